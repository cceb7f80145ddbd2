/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The checks of the machine, on trees of files that stand for machines. */
#include "info_checks.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/info_checks_XXXXXX";
static char text[CHECK_TEXT_MAX];

static void setup(void)
{
	cr_assert(mkdtemp(root));
	checks_root = root;
}

static void fini(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	cr_expect(!system(command));
}

TestSuite(checks, .init = setup, .fini = fini);

static char *path_in_root(const char *path)
{
	static char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	return whole;
}

/* Makes a file with @content, and the directories of its path. */
static void put(const char *path, const char *content)
{
	char *whole = path_in_root(path), *p;
	FILE *f;

	for (p = strchr(whole + strlen(root) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(whole, 0755);
		*p = '/';
	}
	f = fopen(whole, "w");
	cr_assert(f);
	fputs(content, f);
	fclose(f);
}

static enum check_state run(const char *what)
{
	size_t i;

	for (i = 0; i < n_checks && strcmp(checks[i].what, what); i++)
		;
	cr_assert_lt(i, n_checks);
	return checks[i].run(text, sizeof(text));
}

static void finds(const char *what, enum check_state state, const char *part)
{
	cr_expect_eq(run(what), state, "%s", text);
	cr_expect(strstr(text, part), "%s, not: %s", text, part);
}

Test(checks, what_an_rdma_device_needs)
{
	finds("RDMA devices", CHECK_NOTE, "none in /sys/class/infiniband");
	put("/sys/class/infiniband/mlx5_0", "");
	finds("RDMA devices", CHECK_BAD,
	      "mlx5_0, but no /dev/infiniband/uverbs0; load the module ib_uverbs");
	put("/dev/infiniband/uverbs0", "");
	finds("RDMA devices", CHECK_BAD, "load the module rdma_ucm");
	put("/dev/infiniband/rdma_cm", "");
	finds("RDMA devices", CHECK_OK, "mlx5_0");
}

Test(checks, permission_to_open_an_rdma_device)
{
	if (!geteuid())
		cr_skip_test("root may open everything");
	put("/sys/class/infiniband/mlx5_0", "");
	put("/dev/infiniband/uverbs0", "");
	put("/dev/infiniband/rdma_cm", "");
	cr_assert(!chmod(path_in_root("/dev/infiniband/uverbs0"), 0));
	finds("RDMA devices", CHECK_BAD, "no permission");
}

Test(checks, shared_memory)
{
	finds("/dev/shm", CHECK_NOTE, "missing");
	put("/dev/shm", "");
	finds("/dev/shm", CHECK_NOTE, "missing");
}

Test(checks, ports)
{
	put("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
	finds("ports", CHECK_OK, "10000-32767");
	put("/proc/sys/net/ipv4/ip_local_port_range", "1024\t60999\n");
	finds("ports", CHECK_NOTE, "ip_local_port_range is 1024 60999");
}

Test(checks, descriptors)
{
	struct rlimit limit;
	int taken;

	cr_assert(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 200;
	cr_assert(!setrlimit(RLIMIT_NOFILE, &limit));
	cr_expect_eq(run("descriptors"), CHECK_NOTE);
	/* most of them are open: only free ones count */
	while ((taken = dup(STDERR_FILENO)) >= 0 && taken < 150)
		;
	cr_expect_eq(run("descriptors"), CHECK_BAD);
	cr_expect(strstr(text, "limited to 200, and 49 are free: "), "%s", text);
}

Test(checks, every_row_is_printed_once)
{
	char *out_text;
	size_t len, i;
	FILE *out = open_memstream(&out_text, &len);
	const char *at;

	checks_print(out, NULL);
	fclose(out);
	for (i = 0; i < n_checks; i++) {
		at = strstr(out_text, checks[i].what);
		cr_expect(at, "%s", checks[i].what);
	}
	for (i = 0, at = out_text; (at = strchr(at, '\n')); at++)
		i++;
	cr_expect_eq(i, n_checks, "%s", out_text);
	free(out_text);
}

static bool prints(const char *fabrics, const char *what)
{
	char *out_text;
	size_t len;
	FILE *out = open_memstream(&out_text, &len);
	bool found;

	checks_print(out, fabrics);
	fclose(out);
	found = strstr(out_text, what);
	free(out_text);
	return found;
}

Test(checks, rows_on_other_fabrics_are_left_out)
{
	cr_expect(prints("verbs -", "RDMA devices") && prints("verbs -", "locked memory"));
	cr_expect(!prints("tcp rings", "RDMA devices") && !prints("tcp rings", "/dev/shm"));
	cr_expect(prints("tcp rings", "ports") && prints("tcp rings", "peer memory"));
	cr_expect(prints("tcp;ofi_rxm -", "ports") && !prints("tcp;ofi_rxm -", "peer memory"));
	cr_expect(prints("shm -", "/dev/shm") && prints("rings -", "interfaces"));
}
