/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks of the machine: limits, devices, permissions and sizes that fabrics depend on. */
#include "info_checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

const char *checks_root = "";

static const char *path_of(const char *path, char buf[PATH_MAX])
{
	snprintf(buf, PATH_MAX, "%s%s", checks_root, path);
	return buf;
}

static bool readable(const char *path)
{
	char buf[PATH_MAX];

	return !access(path_of(path, buf), R_OK | W_OK);
}

static bool exists(const char *path)
{
	char buf[PATH_MAX];

	return !access(path_of(path, buf), F_OK);
}

/* Reads one or two numbers. Returns how many there are. */
static int numbers_read(const char *path, long *a, long *b)
{
	char buf[PATH_MAX];
	FILE *f = fopen(path_of(path, buf), "re");
	int n = f ? fscanf(f, "%ld %ld", a, b) : 0;

	if (f)
		fclose(f);
	return n < 0 ? 0 : n;
}

/* Writes the names in a directory that begin with @prefix; an empty text if there is none. */
static void names_read(const char *path, const char *prefix, char *names, size_t len)
{
	char buf[PATH_MAX];
	DIR *dir = opendir(path_of(path, buf));
	const struct dirent *e;
	size_t used = 0;

	names[0] = '\0';
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && !strncmp(e->d_name, prefix, strlen(prefix)) &&
		    used < len)
			used += (size_t)snprintf(names + used, len - used, "%s%s", used ? " " : "",
						 e->d_name);
	if (dir)
		closedir(dir);
}

static const char *bytes_text(unsigned long long bytes, char *buf, size_t len)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	size_t i;

	for (i = 0; bytes >= 1024 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		bytes /= 1024;
	snprintf(buf, len, "%llu %s", bytes, units[i]);
	return buf;
}

/* --- descriptors ---------------------------------------------------------- */

#define FILES_AMPLE 4096
/* An IA, and a connection within a process over the fabric that takes most. */
#define FILES_LEAST 64

/* Returns how many descriptors are free below @limit, at most FILES_LEAST. */
static int files_free(rlim_t limit)
{
	int fd, n = 0;

	for (fd = 0; (rlim_t)fd < limit && n < FILES_LEAST; fd++)
		n += fcntl(fd, F_GETFD) < 0;
	return n;
}

enum check_state check_files(char *text, size_t len)
{
	struct rlimit limit;
	int n;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY) {
		snprintf(text, len, "unlimited");
		return CHECK_OK;
	}
	n = files_free(limit.rlim_cur);
	if (n < FILES_LEAST) {
		snprintf(text, len, "limited to %llu, and %d are free: an IA with a connection "
			 "needs %d; raise the limit, by \"ulimit -n %d\", nofile in "
			 "/etc/security/limits.conf, or LimitNOFILE in a service",
			 (unsigned long long)limit.rlim_cur, n, FILES_LEAST, FILES_AMPLE);
		return CHECK_BAD;
	}
	if (limit.rlim_cur >= FILES_AMPLE) {
		snprintf(text, len, "%llu", (unsigned long long)limit.rlim_cur);
		return CHECK_OK;
	}
	snprintf(text, len,
		 "limited to %llu, and each connection has one: a program with more connections "
		 "needs \"ulimit -n %d\", nofile in /etc/security/limits.conf, or LimitNOFILE in a "
		 "service",
		 (unsigned long long)limit.rlim_cur, FILES_AMPLE);
	return CHECK_NOTE;
}

/* --- interfaces ----------------------------------------------------------- */

/* Appends the name of an interface, once: the list has a row for each address. */
static void name_add(char *names, size_t len, const char *name)
{
	char word[IF_NAMESIZE + 2];
	const size_t used = strlen(names);

	snprintf(word, sizeof(word), " %s,", name);
	if (!strstr(names, word))
		snprintf(names + used, len - used, "%s", word);
}

enum check_state check_interfaces(char *text, size_t len, bool *has_lo)
{
	char names[256] = "";
	struct ifaddrs *list, *i;
	bool lo = false;

	*has_lo = true;
	if (getifaddrs(&list)) {
		snprintf(text, len, "not listed: %s", strerror(errno));
		return CHECK_NOTE;
	}
	for (i = list; i; i = i->ifa_next) {
		const bool usable = i->ifa_flags & IFF_UP && i->ifa_addr &&
				    (i->ifa_addr->sa_family == AF_INET ||
				     i->ifa_addr->sa_family == AF_INET6);

		if (usable && i->ifa_flags & IFF_LOOPBACK)
			lo = true;
		else if (usable)
			name_add(names, sizeof(names), i->ifa_name);
	}
	freeifaddrs(list);
	*has_lo = lo;
	if (!lo)
		snprintf(text, len,
			 "lo is down: fabrics that connect to this host by 127.0.0.1 fail; "
			 "\"ip link set lo up\"");
	else if (!names[0])
		snprintf(text, len,
			 "only lo is up: other hosts cannot be reached; \"ip -br address\" shows "
			 "the others");
	else
		snprintf(text, len, "%s lo", names + 1);
	return lo && names[0] ? CHECK_OK : CHECK_NOTE;
}

static enum check_state interfaces_row(char *text, size_t len)
{
	bool lo;

	return check_interfaces(text, len, &lo);
}

/* --- locked memory ------------------------------------------------------- */

#define LOCK_AMPLE (64ULL << 20)
#define CAP_IPC_LOCK_BIT 14

static bool may_lock_all(void)
{
	unsigned long long caps = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps >> CAP_IPC_LOCK_BIT & 1;
}

static enum check_state check_memlock(char *text, size_t len)
{
	char size[32], devices[128];
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY) {
		snprintf(text, len, "unlimited");
		return CHECK_OK;
	}
	bytes_text(limit.rlim_cur, size, sizeof(size));
	if (limit.rlim_cur >= LOCK_AMPLE) {
		snprintf(text, len, "%s", size);
		return CHECK_OK;
	}
	snprintf(text, len,
		 "limited to %s, and RDMA devices lock the memory of queues and LMRs; set "
		 "memlock to unlimited in /etc/security/limits.conf, or LimitMEMLOCK=infinity in a "
		 "service%s",
		 size, may_lock_all() ? " (CAP_IPC_LOCK lifts the limit for this process)" : "");
	names_read("/sys/class/infiniband", "", devices, sizeof(devices));
	return devices[0] && !may_lock_all() ? CHECK_BAD : CHECK_NOTE;
}

/* --- RDMA devices --------------------------------------------------------- */

enum check_state check_rdma(char *text, size_t len)
{
	char devices[128], nodes[128], first[300];

	names_read("/sys/class/infiniband", "", devices, sizeof(devices));
	if (!devices[0]) {
		snprintf(
			text, len,
			"none in /sys/class/infiniband; load the adapter's module (such as "
			"mlx5_ib), or for soft-RoCE rdma_rxe and "
			"\"rdma link add rxe0 type rxe netdev eth0\"");
		return CHECK_NOTE;
	}
	names_read("/dev/infiniband", "uverbs", nodes, sizeof(nodes));
	snprintf(first, sizeof(first), "/dev/infiniband/%.*s", (int)strcspn(nodes, " "), nodes);
	if (!nodes[0])
		snprintf(text, len,
			 "%s, but no /dev/infiniband/uverbs0; load the module ib_uverbs "
			 "(package rdma-core)",
			 devices);
	else if (!exists("/dev/infiniband/rdma_cm"))
		snprintf(text, len,
			 "%s, but no /dev/infiniband/rdma_cm; load the module rdma_ucm "
			 "(package rdma-core)",
			 devices);
	else if (!readable(first) || !readable("/dev/infiniband/rdma_cm"))
		snprintf(text, len,
			 "%s, but no permission to open %s and rdma_cm; the udev rules of "
			 "rdma-core grant it",
			 devices, first);
	else {
		snprintf(text, len, "%s", devices);
		return CHECK_OK;
	}
	return CHECK_BAD;
}

/* --- reading the memory of peers ------------------------------------------ */

/* Returns 0, or the errno with which a process of this user may not read this process. */
static int probe_peer_memory(void)
{
	char word = 1, copy = 0;
	struct iovec from = { &word, 1 }, to = { &copy, 1 };
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(process_vm_readv(getppid(), &to, 1, &from, 1, 0) == 1 ? 0 : errno & 0x7f);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return EAGAIN;
	return WEXITSTATUS(status);
}

static enum check_state check_peer_memory(char *text, size_t len)
{
	int err = probe_peer_memory();
	long scope = 0, unused;

	if (!err) {
		snprintf(text, len, "processes of one user may read each other's memory");
		return CHECK_OK;
	}
	if (numbers_read("/proc/sys/kernel/yama/ptrace_scope", &scope, &unused) && scope)
		snprintf(
			text, len,
			"Yama forbids processes to read each other's memory, so long messages "
			"within this host are copied twice; "
			"\"sysctl kernel.yama.ptrace_scope=0\" permits it (now %ld)",
			scope);
	else
		snprintf(text, len,
			 "process_vm_readv: %s, so long messages within this host are copied "
			 "twice; a container's seccomp filter may be the cause",
			 strerror(err));
	return CHECK_NOTE;
}

/* --- /dev/shm ------------------------------------------------------------- */

/*
 * Only libfabric's shm needs it, the IA ofi-shm-rdm: fi_getinfo() leaves shm out if one region for
 * each processor has no room. A region has 16 MiB (1.17, 2.1) or 13 (2.6).
 */
#define SHM_REGION (16ULL << 20)

enum check_state check_shm(char *text, size_t len)
{
	const unsigned long long need =
		SHM_REGION * (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN);
	char buf[PATH_MAX], have[32], least[32];
	const char *path = path_of("/dev/shm", buf);
	unsigned long long available;
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		snprintf(text, len, "missing; \"mkdir /dev/shm; mount -t tmpfs tmpfs /dev/shm\"");
		return CHECK_NOTE;
	}
	if (statvfs(path, &fs) || fs.f_flag & ST_RDONLY || access(path, W_OK)) {
		snprintf(text, len,
			 "cannot be written; \"mount -o remount,rw,mode=1777 /dev/shm\"");
		return CHECK_NOTE;
	}
	available = (unsigned long long)fs.f_bavail * fs.f_frsize;
	bytes_text(available, have, sizeof(have));
	bytes_text(need, least, sizeof(least));
	snprintf(text, len,
		 available < need ? "%s free, and libfabric's shared memory needs %s; \"mount "
				    "-o remount,size=1g /dev/shm\"" :
				    "%s free",
		 have, least);
	return available < need ? CHECK_NOTE : CHECK_OK;
}

/* --- ports ---------------------------------------------------------------- */

#define MAPPED_LAST 32767 /* the last port of a qualifier that is no port */

bool check_ephemeral(long *first, long *last)
{
	if (numbers_read("/proc/sys/net/ipv4/ip_local_port_range", first, last) == 2)
		return true;
	*first = MAPPED_LAST + 1;
	*last = 60999;
	return false;
}

static enum check_state check_ports(char *text, size_t len)
{
	long first, last;
	const bool known = check_ephemeral(&first, &last);

	if (known && first <= MAPPED_LAST) {
		snprintf(
			text, len,
			"net.ipv4.ip_local_port_range is %ld %ld, so outgoing connections may "
			"occupy the ports of service points; \"sysctl net.ipv4.ip_local_port_range="
			"'32768 60999'\"",
			first, last);
		return CHECK_NOTE;
	}
	snprintf(
		text, len,
		"a firewall must admit TCP to the ports of the programs' qualifiers, to 10000-%d "
		"for qualifiers that are no port, and to %ld-%ld for those that the provider "
		"picks; for datagrams, and connectionless fabrics, TCP and UDP to %ld-%ld",
		MAPPED_LAST, first, last, first, last);
	return CHECK_OK;
}

/* --- the table ------------------------------------------------------------ */

static enum check_state check_hwloc(char *text, size_t len)
{
#ifdef USES_HWLOC
	snprintf(text, len, "in use, for the placement near devices");
	return CHECK_OK;
#else
	snprintf(text, len,
		 "not in use: without it no device counts as near, which matters with several "
		 "NUMA nodes; install libhwloc-dev and configure again");
	return CHECK_NOTE;
#endif
}

const struct check checks[] = {
	{ "RDMA devices", check_rdma, { "verbs", "efa" } },
	{ "locked memory", check_memlock, { "verbs", "efa" } },
	{ "descriptors", check_files, { NULL } },
	{ "interfaces", interfaces_row, { NULL } },
	{ "/dev/shm", check_shm, { "shm" } },
	{ "peer memory", check_peer_memory, { "rings", "shm" } },
	{ "ports", check_ports, { "tcp", "sockets", "verbs", "efa" } },
	{ "hwloc", check_hwloc, { NULL } },
};

const size_t n_checks = sizeof(checks) / sizeof(checks[0]);

/* A layer has its fabric in its name, as tcp;ofi_rxm. */
static bool matters(const struct check *check, const char *fabrics)
{
	size_t i;

	if (!fabrics || !check->fabrics[0])
		return true;
	for (i = 0; i < sizeof(check->fabrics) / sizeof(check->fabrics[0]); i++)
		if (check->fabrics[i] && strstr(fabrics, check->fabrics[i]))
			return true;
	return false;
}

void check_row(FILE *out, const char *what, enum check_state state, const char *format, ...)
{
	static const char *const states[] = { "ok", "note", "bad" };
	va_list args;

	fprintf(out, "  %-16s %-5s ", what, states[state]);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}

void checks_print(FILE *out, const char *fabrics)
{
	char text[CHECK_TEXT_MAX];
	size_t i;

	for (i = 0; i < n_checks; i++) {
		enum check_state state;

		if (!matters(&checks[i], fabrics))
			continue;
		state = checks[i].run(text, sizeof(text));
		check_row(out, checks[i].what, state, "%s", text);
	}
}
