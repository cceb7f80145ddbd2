/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code shared by the reproductions of ../libfabric-defects.md.
 *
 * Each reproduction is a program on bare libfabric. It exits with 0 if the defect does not show,
 * 1 if it shows, 77 if this libfabric lacks a required feature, and 99 if the reproduction itself
 * failed; its last line describes the result. A crash or a hang happens in a child process.
 */
#ifndef DEFECT_H
#define DEFECT_H

#include <errno.h>
#include <glob.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	ABSENT = 0,
	SHOWS = 1,
	SKIP = 77,
	FAILED = 99
};

/* The size of an shm endpoint's name. The names of their files contain the owner's pid. */
#define NAME_SIZE 128
static pid_t owner;

/* In shared memory: the round counter of a reproduction that loops. bounded() prints it. */
static const volatile unsigned *rounds;

static _Noreturn __attribute__((format(printf, 2, 3))) void end(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(status);
}

/* Ends the reproduction if @call returns a negative errno. */
#define must(call)                                                                 \
	do {                                                                       \
		long must_ret = (long)(call);                                      \
		if (must_ret < 0)                                                  \
			end(FAILED, "%s: %s", #call, fi_strerror((int)-must_ret)); \
	} while (0)

static inline int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Returns zeroed memory that is shared with processes forked later. */
static inline void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		end(FAILED, "mmap: %s", strerror(errno));
	return p;
}

/* Runs @body in a new process in process group @group (0: a new group). */
static inline pid_t start(void (*body)(void), pid_t group)
{
	pid_t pid = fork();

	if (pid < 0)
		end(FAILED, "fork: %s", strerror(errno));
	if (!pid) {
		setpgid(0, group);
		body();
		end(ABSENT, "does not show");
	}
	setpgid(pid, group);
	return pid;
}

/* Removes the files of shm that killed processes leave behind. */
static inline void files_remove(void)
{
	char pattern[64];
	glob_t found;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/dev/shm/defect-%d-*", owner);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	globfree(&found);
}

static inline void round_end(void)
{
	if (rounds)
		printf(", in round %u", *rounds);
	putchar('\n');
}

/* Runs @body in a child process. A crash, or more than @seconds, counts as the defect. */
static inline int bounded(void (*body)(void), int seconds)
{
	const int64_t until = now_ms() + seconds * 1000;
	int status;
	pid_t pid;

	owner = getpid();
	pid = start(body, 0);
	while (!waitpid(pid, &status, WNOHANG)) {
		if (now_ms() > until) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			files_remove();
			printf("no end within %d s", seconds);
			round_end();
			return SHOWS;
		}
		usleep(1000);
	}
	kill(-pid, SIGKILL);
	files_remove();
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	round_end();
	return SHOWS;
}

/* Returns whether @until has passed. For polling loops: yields the processor. */
static inline bool is_late(int64_t until)
{
	sched_yield();
	return now_ms() > until;
}

/* The objects of one side. The CQ and the EQ have descriptors where the fabric supports them. */
struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq; /* connected endpoints */
	struct fid_pep *pep;
	struct fid_av *av; /* connectionless endpoints */
	struct fid_ep *ep;
};

static int mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

static inline struct fi_info *hints_for(const char *provider, enum fi_ep_type type, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = type;
	hints->caps = caps;
	hints->domain_attr->mr_mode = mr_mode;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

/* Opens the info that matches @hints, on the loopback interface unless the provider is shm. */
static inline void node_open(struct node *n, struct fi_info *hints)
{
	const bool msg = hints->ep_attr->type == FI_EP_MSG;
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = 1024 };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_FD };
	const bool addressed = strcmp(hints->fabric_attr->prov_name, "shm");
	int ret;

	memset(n, 0, sizeof(*n));
	ret = fi_getinfo(FI_VERSION(1, 17), addressed ? "127.0.0.1" : NULL, NULL,
			 addressed ? FI_SOURCE : 0, hints, &n->info);
	if (ret)
		end(SKIP, "no %s here: %s", hints->fabric_attr->prov_name, fi_strerror(-ret));
	must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	must(fi_domain(n->fabric, n->info, &n->domain, NULL));
	cq.wait_obj = addressed ? FI_WAIT_FD : FI_WAIT_NONE;
	must(fi_cq_open(n->domain, &cq, &n->cq, NULL));
	if (msg)
		must(fi_eq_open(n->fabric, &eq, &n->eq, NULL));
}

/* Opens a connectionless endpoint. @part, for shm only, becomes a part of its name. */
static inline void rdm_open(struct node *n, const char *provider, const char *part, uint64_t caps)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 256 };
	struct fi_info *hints = hints_for(provider, FI_EP_RDM, caps);

	node_open(n, hints);
	if (part) {
		free(n->info->src_addr);
		free(n->info->dest_addr);
		n->info->dest_addr = NULL;
		n->info->dest_addrlen = 0;
		n->info->src_addrlen = 1 + (size_t)asprintf((char **)&n->info->src_addr,
							    "fi_shm://defect-%d-%s", owner, part);
	}
	must(fi_av_open(n->domain, &av, &n->av, NULL));
	must(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	must(fi_ep_bind(n->ep, &n->av->fid, 0));
	must(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_enable(n->ep));
	fi_freeinfo(hints);
}

static inline void rdm_close(struct node *n)
{
	must(fi_close(&n->ep->fid));
	must(fi_close(&n->av->fid));
	must(fi_close(&n->cq->fid));
	must(fi_close(&n->domain->fid));
	must(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

/* Gets the name that peers insert to reach the shm endpoint of @n. */
static inline void shm_name(struct node *n, char name[NAME_SIZE])
{
	size_t size = NAME_SIZE;

	must(fi_getname(&n->ep->fid, name, &size));
}

/* Returns FI_ADDR_NOTAVAIL if the AV rejects @name. */
static inline fi_addr_t shm_insert(struct node *n, const char *name)
{
	fi_addr_t address = FI_ADDR_NOTAVAIL;

	return fi_av_insert(n->av, name, 1, &address, 0, NULL) == 1 ? address : FI_ADDR_NOTAVAIL;
}

/* Reads one completion. Returns 1, -FI_EAGAIN, or the negative error of a failed operation. */
static inline int cq_one(struct node *n, struct fi_cq_data_entry *entry)
{
	struct fi_cq_err_entry error = { .err = 0 };
	ssize_t ret = fi_cq_read(n->cq, entry, 1);

	if (ret != -FI_EAVAIL)
		return (int)ret;
	must(fi_cq_readerr(n->cq, &error, 0));
	entry->op_context = error.op_context;
	return -abs(error.err);
}

/* Injects @size bytes to @to and polls the CQ. Returns false if this takes more than @ms. */
static inline bool inject(struct node *n, fi_addr_t to, const void *data, size_t size, int ms)
{
	const int64_t until = now_ms() + ms;
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_inject(n->ep, data, size, to)) == -FI_EAGAIN) {
		cq_one(n, &entry);
		if (is_late(until))
			return false;
	}
	must(ret);
	return true;
}

/* Waits up to @ms for a completion. Returns 0, its negative error, or -FI_EAGAIN. */
static inline int wait_one(struct node *n, struct fi_cq_data_entry *entry, int ms)
{
	const int64_t until = now_ms() + ms;
	int ret;

	while ((ret = cq_one(n, entry)) == -FI_EAGAIN)
		if (is_late(until))
			return -FI_EAGAIN;
	return ret < 0 ? ret : 0;
}

static inline void msg_open(struct node *n, const char *provider, uint64_t caps)
{
	struct fi_info *hints = hints_for(provider, FI_EP_MSG, caps);

	node_open(n, hints);
	fi_freeinfo(hints);
}

/* Listens on the loopback interface and returns the port. */
static inline uint16_t msg_listen(struct node *n)
{
	struct sockaddr_in address = { .sin_port = 0 };
	size_t size = sizeof(address);

	must(fi_passive_ep(n->fabric, n->info, &n->pep, NULL));
	must(fi_pep_bind(n->pep, &n->eq->fid, 0));
	must(fi_listen(n->pep));
	must(fi_getname(&n->pep->fid, &address, &size));
	return ntohs(address.sin_port);
}

static inline struct fid_ep *msg_endpoint(struct node *n, struct fi_info *info)
{
	struct fid_ep *ep;

	must(fi_endpoint(n->domain, info, &ep, NULL));
	must(fi_ep_bind(ep, &n->eq->fid, 0));
	must(fi_ep_bind(ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_enable(ep));
	return ep;
}

/* Reads the EQ, and the CQ only for progress, until an event. Returns its type, or -FI_EAGAIN. */
static inline int eq_wait(struct node *n, struct fi_eq_cm_entry *entry, int ms)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + 512];
	} buffer;
	const int64_t until = now_ms() + ms;
	struct fi_eq_err_entry error = { .err = 0 };
	uint32_t event;
	ssize_t ret;

	do {
		fi_cq_read(n->cq, NULL, 0);
		ret = fi_eq_read(n->eq, &event, &buffer, sizeof(buffer), 0);
		if (ret == -FI_EAVAIL) {
			fi_eq_readerr(n->eq, &error, 0);
			return -abs(error.err);
		}
		if (ret > 0) {
			*entry = buffer.cm;
			return (int)event;
		}
	} while (!is_late(until));
	return -FI_EAGAIN;
}

/* Handles one event of @n: accepts a request, or counts a connection. */
static inline void pair_step(struct node *n, struct fid_ep **passive, int *connected)
{
	struct fi_eq_cm_entry entry;
	int event = eq_wait(n, &entry, 0);

	if (event == FI_CONNREQ) {
		*passive = msg_endpoint(n, entry.info);
		must(fi_accept(*passive, NULL, 0));
		fi_freeinfo(entry.info);
	} else if (event == FI_CONNECTED) {
		++*connected;
	} else if (event != -FI_EAGAIN) {
		end(FAILED, "event %d while connecting", event);
	}
}

static inline struct fid_ep *msg_connect(struct node *n, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct fid_ep *ep = msg_endpoint(n, n->info);

	must(fi_connect(ep, &to, NULL, 0));
	return ep;
}

/* Connects an endpoint of @from to one of @to, which listens at @port. @to may be @from. */
static inline void msg_pair(struct node *from, struct node *to, uint16_t port,
			    struct fid_ep **active, struct fid_ep **passive)
{
	const int64_t until = now_ms() + 5000;
	int connected = 0;

	*passive = NULL;
	*active = msg_connect(from, port);
	while (connected < 2 || !*passive) {
		pair_step(from, passive, &connected);
		pair_step(to, passive, &connected);
		if (is_late(until))
			end(FAILED, "no connection within 5 s");
	}
}

/*
 * Polls the descriptor of CQ or EQ @fid for @ms. Returns fi_trywait()'s error or poll()'s result.
 */
static inline int sleep_for(struct node *n, struct fid *fid, int ms)
{
	struct pollfd p = { .events = POLLIN };
	int ret;

	must(fi_control(fid, FI_GETWAIT, &p.fd));
	ret = fi_trywait(n->fabric, &fid, 1);
	return ret ? ret : poll(&p, 1, ms);
}

/* Finds this process's connected socket with @port at the peer (at its own end if @own), or -1. */
static inline int socket_of(uint16_t port, bool own)
{
	struct sockaddr_in address, peer;
	socklen_t size, peer_size;
	int fd;

	for (fd = 3; fd < 1024; fd++) {
		size = peer_size = sizeof(address);
		if (!getsockname(fd, (struct sockaddr *)&address, &size) &&
		    !getpeername(fd, (struct sockaddr *)&peer, &peer_size) &&
		    ntohs((own ? address : peer).sin_port) == port)
			return fd;
	}
	return -1;
}

#endif
