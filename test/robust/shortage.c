/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The results of calls while descriptors or threads are exhausted: INSUFFICIENT_RESOURCES with its
 * subtype, and success once there are enough. DAT_TEST_IA names the IA (default ofi-tcp).
 *
 * usage: shortage descriptors | threads | open
 */

#include "dat_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHORT_OF(what) \
	((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_UINT32)DAT_INSUFFICIENT_RESOURCES | \
		      DAT_RESOURCE_##what))
#define MOST 200	/* descriptors that a call may need */

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE evd;
static DAT_PZ_HANDLE pz;

static const char *text(DAT_RETURN ret)
{
	static char line[128];
	const char *major = "", *minor = "";

	dat_strerror(ret, &major, &minor);
	snprintf(line, sizeof(line), "%s %s", major, minor);
	return line;
}

static DAT_RETURN open_ia(void)
{
	const char *name = getenv("DAT_TEST_IA");
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)(name ? name : "ofi-tcp"), 8, &async, &ia);
}

static DAT_RETURN close_ia(void)
{
	return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN make_psp(void)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	return dat_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

static DAT_RETURN make_pz(void)
{
	return dat_pz_create(ia, &pz);
}

static DAT_RETURN make_ep(void)
{
	DAT_EVD_HANDLE conn;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	ret = dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG,
			     &conn);
	return ret != DAT_SUCCESS ? ret : dat_ep_create(ia, pz, conn, conn, conn, NULL, &ep);
}

static DAT_RETURN make_lmr(void)
{
	static char buffer[4096];
	DAT_REGION_DESCRIPTION region = { .for_va = buffer };
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	DAT_VADDR address;
	DAT_LMR_HANDLE lmr;
	DAT_VLEN len;

	return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(buffer), pz,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &context, &remote, &len,
			      &address);
}

static DAT_RETURN make_cno(void)
{
	DAT_CNO_HANDLE cno;
	int fd;

	return dat_cno_fd_create(ia, &fd, &cno);
}

static void limit(int resource, rlim_t n)
{
	struct rlimit r;

	getrlimit(resource, &r);
	r.rlim_cur = n < r.rlim_max ? n : r.rlim_max;
	setrlimit(resource, &r);
}

/*
 * Repeats the call with one more descriptor each time, until it succeeds. Returns 1 if it
 * fails otherwise.
 */
static int raise_limit(const char *name, DAT_RETURN (*call)(void))
{
	DAT_RETURN ret = DAT_SUCCESS;
	rlim_t n;

	for (n = 3; n < MOST; n++) {
		limit(RLIMIT_NOFILE, n);
		ret = call();
		limit(RLIMIT_NOFILE, 1024);
		if (ret != SHORT_OF(DEVICE))
			break;
	}
	printf("%s: %s with %d descriptors\n", name, text(ret), (int)n);
	return ret != DAT_SUCCESS;
}

static int descriptors(void)
{
	int faults = raise_limit("dat_ia_open", open_ia);

	if (faults || dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd) != DAT_SUCCESS)
		return 1;
	faults += raise_limit("dat_psp_create_any", make_psp);
	faults += raise_limit("dat_pz_create", make_pz);
	faults += raise_limit("dat_ep_create", make_ep);
	faults += raise_limit("dat_lmr_create", make_lmr);
	faults += raise_limit("dat_cno_fd_create", make_cno);
	return faults || close_ia() != DAT_SUCCESS;
}

/* The limit does not apply to root, so root becomes another user after all libraries are loaded. */
static int threads(void)
{
	DAT_RETURN ret = open_ia();

	if (ret == DAT_SUCCESS)
		close_ia();
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 99;
	limit(RLIMIT_NPROC, 0);
	ret = open_ia();
	printf("without threads: %s\n", text(ret));
	if (ret != SHORT_OF(DEVICE))
		return 1;
	limit(RLIMIT_NPROC, RLIM_INFINITY);
	return open_ia() != DAT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "descriptors"))
		return descriptors();
	if (!strcmp(argv[1], "threads"))
		return threads();
	printf("dat_ia_open: %s\n", text(open_ia()));
	return 0;
}
