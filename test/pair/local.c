/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks whether two processes of one host connect through shared memory over an IA that names no
 * fabric, or over TCP where shared memory cannot be used. The program does not choose either.
 *
 * The kernel's tables show which: a process with data over TCP has an established
 * connection.
 */

#include "cable.h"
#if DAT_VERSION_MAJOR >= 2
#include "datagram.h"
#endif

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536
#define NOBODY 65534

#if DAT_VERSION_MAJOR >= 2
#define PROVIDER "libdaplofi.so.2"
#else
#define PROVIDER "libdaplofi.so.1"
#endif

/* How the two processes differ before any DAT call, and whether they share memory then. */
struct setup {
	void (*server)(void), (*client)(void);
	bool shared;
};

/* Sockets of the network */

#define ESTABLISHED 1u			/* states in the kernel's tables */
#define UNCONNECTED 7u

static bool is_listed(const char *table, unsigned wanted, unsigned long inode)
{
	unsigned long found;
	bool is = false;
	unsigned state;
	char line[512];
	FILE *f = fopen(table, "re");

	if (!f)
		return false;
	while (!is && fgets(line, sizeof(line), f))
		is = sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*d %*d %lu", &state, &found) ==
			     2 &&
		     state == wanted && found == inode;
	fclose(f);
	return is;
}

/* How many sockets of the process are in @table, or in @table6 of IPv6, in @state. */
static unsigned sockets(const char *table, const char *table6, unsigned state)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	unsigned n = 0;

	CHECK(dir, "/proc/self/fd: %s", strerror(errno));
	while ((e = readdir(dir))) {
		char path[300], target[64];
		unsigned long inode;
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = 0;
		if (sscanf(target, "socket:[%lu]", &inode) == 1)
			n += is_listed(table, state, inode) || is_listed(table6, state, inode);
	}
	closedir(dir);
	return n;
}

static unsigned tcp_connections(void)
{
	return sockets("/proc/self/net/tcp", "/proc/self/net/tcp6", ESTABLISHED);
}

/* Checks the counter itself: it must see a connection that is there. */
static void counting(struct pair *p)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(a);

	CHECK(!bind(listener, (struct sockaddr *)&a, len) && !listen(listener, 1) &&
	      !getsockname(listener, (struct sockaddr *)&a, &len), "%s", strerror(errno));
	SAME(tcp_connections(), 0);
	CHECK(!connect(fd, (struct sockaddr *)&a, len), "%s", strerror(errno));
	SAME(tcp_connections(), 1);
	close(fd);
	close(listener);
}

/* Messages and RDMA in both directions; the EVDs are empty afterwards. */
static void use(struct pair *p, struct link *l)
{
	struct mem in;

	mem_get(&l->n, &in, SIZE);
	post_recv(l->ep, &in, 0, SIZE, 1);
	fill(l->m.base, SIZE / 2, p->server);
	pair_sync(p);
	post_send(l->ep, &l->m, 0, SIZE / 2, 2);
	expect_dto(l->n.req, 2, DAT_DTO_SUCCESS, SIZE / 2);
	expect_dto(l->n.recv, 1, DAT_DTO_SUCCESS, SIZE / 2);
	verify(in.base, SIZE / 2, !p->server);
	post_write(l->ep, &l->m, 0, SIZE / 2, 3, &l->theirs, SIZE / 2);
	expect_dto(l->n.req, 3, DAT_DTO_SUCCESS, SIZE / 2);
	pair_sync(p);
	verify(l->m.base + SIZE / 2, SIZE / 2, !p->server);
	memset(in.base, 0, SIZE);
	post_read(l->ep, &in, 0, SIZE / 2, 4, &l->theirs, 0);
	expect_dto(l->n.req, 4, DAT_DTO_SUCCESS, SIZE / 2);
	verify(in.base, SIZE / 2, !p->server);
	pair_sync(p);
	mem_put(&in);
}

static void run_setup(struct pair *p)
{
	const struct setup *setup = pair_arg();
	void (*prepare)(void) = p->server ? setup->server : setup->client;
	struct link l;

	if (prepare)
		prepare();
	link_open(p, &l, SIZE);
	use(p, &l);
	if (setup->shared)
		SAME(tcp_connections(), 0);
	else
		CHECK(tcp_connections(), "no TCP connection");
	link_close(p, &l);
}

#if DAT_VERSION_MAJOR >= 2
static unsigned udp_sockets(void)
{
	return sockets("/proc/self/net/udp", "/proc/self/net/udp6", UNCONNECTED);
}

/* Datagrams from the client to the server and back, over rings or over UDP. */
static void run_datagrams(struct pair *p)
{
	const struct setup *setup = pair_arg();
	void (*prepare)(void) = p->server ? setup->server : setup->client;
	struct ud u;

	if (prepare)
		prepare();
	ud_open(p, &u);
	post_recv(u.ep, &u.m, 0, GRH + 1000, 1);
	pair_sync(p);
	ud_send(&u, &u.to, UD_HALF, 1000, 2);
	ud_done(u.n.recv, u.ep, 1, DAT_IB_DTO_RECV_UD, GRH + 1000);
	if (setup->shared)
		SAME(udp_sockets(), 0);
	else
		SAME(udp_sockets(), 1);
	ud_close(p, &u);
}
#endif

static void shm_works(struct pair *p)
{
	setenv("DAT_TEST_IA", "ofi-shm", 1);
	run_setup(p);
}

/* Shared memory alone has no alternative, so connecting fails immediately. */
static void shm_fails(struct pair *p)
{
	const struct setup *setup = pair_arg();
	struct listener listener;
	struct node n;
	DAT_EP_HANDLE ep;

	setenv("DAT_TEST_IA", "ofi-shm", 1);
	(p->server ? setup->server : setup->client)();
	node_open(&n);
	if (p->server) {
		node_listen(&n, &listener.qual);
		pair_send_listener(p, &n, listener.qual);
		pair_sync(p);
		expect_quiet(n.cr);
	} else {
		pair_recv_listener(p, &listener);
		ep = node_ep(&n, NULL);
		connect_fails(&n, ep, &listener, DAT_CONNECTION_EVENT_UNREACHABLE);
		OK(dat_ep_free(ep));
		pair_sync(p);
	}
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Differences between the processes */

static void must_be_root(void)
{
	if (geteuid())
		pair_skip("not root");
}

static void without_local(void)
{
	setenv("DAT_OFI_LOCAL", "0", 1);
}

static void without_shm(void)
{
	setenv("FI_PROVIDER", "tcp", 1);
}

static void without_reading(void)
{
	setenv("DAT_OFI_CMA", "0", 1);
}

/*
 * Opens an IA before it changes the user: files that opening reads may be readable by the first
 * user only.
 */
static void as_another_user(void)
{
	struct node n;

	must_be_root();
	node_open(&n);
	CHECK(dlopen(PROVIDER, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE), "%s", dlerror());
	node_close(&n);
	CHECK(!setgid(NOBODY) && !setuid(NOBODY), "%s", strerror(errno));
}

static void leave(int namespace)
{
	if (unshare(namespace))
		pair_skip("unshare: %s", strerror(errno));
}

/* The role continues in a child, which is alone in the new namespace. */
static void with_other_pids(void)
{
	int status;
	pid_t pid;

	leave(CLONE_NEWPID);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

/* An IPC namespace does not contain /dev/shm. */
static void with_other_ipc(void)
{
	leave(CLONE_NEWIPC);
}

static void with_other_dev_shm(void)
{
	leave(CLONE_NEWNS);
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, NULL))
		pair_skip("cannot mount /dev/shm: %s", strerror(errno));
}

static const struct setup shared = { .shared = true }, no_cma = { without_reading, NULL, true },
			  server_disabled = { without_local, NULL, false },
			  client_disabled = { NULL, without_local, false },
			  both_disabled = { without_local, without_local, false },
			  excluded = { NULL, without_shm, false },
			  users = { must_be_root, as_another_user, false },
			  pids = { must_be_root, with_other_pids, true },
			  ipc = { must_be_root, with_other_ipc, true },
			  mounts = { must_be_root, with_other_dev_shm, true };

/* Other sockets */

static socklen_t name_of(struct sockaddr_un *name, DAT_CONN_QUAL qual)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dat-ofi/side/%" PRIu64,
			(uint64_t)qual);
}

/* The provider must send nothing to a listener of another user. */
static void squat(int fd, const char *text)
{
	for (;;) {
		int peer = accept(fd, NULL, NULL);
		char c;

		if (peer < 0 || (geteuid() == NOBODY && recv(peer, &c, 1, 0) > 0))
			_exit(1);
		send(peer, text, strlen(text), MSG_NOSIGNAL);
		close(peer);
	}
}

/* A process that listens under the name of @qual before the provider does. */
static pid_t squatter(DAT_CONN_QUAL qual, const char *text)
{
	struct sockaddr_un name;
	socklen_t len = name_of(&name, qual);
	int ready[2], fd;
	char c;
	pid_t pid;

	CHECK(!pipe(ready), "%s", strerror(errno));
	pid = fork();
	if (!pid) {
		if (!*text && !geteuid() && setuid(NOBODY))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(fd, (struct sockaddr *)&name, len) || listen(fd, 8) ||
		    write(ready[1], "", 1) < 1)
			_exit(1);
		squat(fd, text);
	}
	close(ready[1]);
	SAME(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static DAT_CONN_QUAL free_qual(struct node *n)
{
	DAT_CONN_QUAL qual;

	OK(dat_psp_free(node_listen(n, &qual)));
	return qual;
}

/* The connection of @ep is established, through shared memory or not; then ends. */
static void expect_fabric(struct pair *p, struct node *n, DAT_EP_HANDLE ep, bool by_memory)
{
	DAT_EVENT event;

	expect_event(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	SAME(tcp_connections() == 0, by_memory);
	pair_unlink(p, n, ep);
	OK(dat_ep_free(ep));
}

static void accept_one(struct pair *p, struct node *n, bool by_memory)
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	OK(dat_cr_accept(node_request(n), ep, 0, NULL));
	expect_fabric(p, n, ep, by_memory);
}

static void connect_one(struct pair *p, struct node *n, const struct listener *listener,
			bool by_memory)
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);

	ep_connect(ep, listener);
	expect_fabric(p, n, ep, by_memory);
}

static void squatted_server(struct pair *p)
{
	const char *text = pair_arg();
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;
	int status;
	pid_t pid;

	node_open(&n);
	qual = free_qual(&n);
	pid = squatter(qual, text);
	OK(dat_psp_create(n.ia, qual, n.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	pair_send_listener(p, &n, qual);
	accept_one(p, &n, false);
	OK(dat_psp_free(psp));
	kill(pid, SIGKILL);
	SAME(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status), "the other user's listener received data");
	node_close(&n);
}

static void squatted_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	node_open(&n);
	pair_recv_listener(p, &listener);
	connect_one(p, &n, &listener, false);
	node_close(&n);
}

/* A peer that speaks another protocol is rejected, and the next peer is served. */
static void foreign_client_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	accept_one(p, &n, true);
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void foreign_client_client(struct pair *p)
{
	static const char words[] = "GET / HTTP/1.0\r\n\r\n";
	struct sockaddr_un name;
	struct listener listener;
	struct node n;
	socklen_t len;
	char answer;
	int fd;

	node_open(&n);
	pair_recv_listener(p, &listener);
	len = name_of(&name, listener.qual);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!connect(fd, (struct sockaddr *)&name, len), "%s", strerror(errno));
	SAME(write(fd, words, strlen(words)), strlen(words));
	CHECK(read(fd, &answer, 1) <= 0, "the foreign client got an answer");
	close(fd);
	connect_one(p, &n, &listener, true);
	node_close(&n);
}

/* Another network namespace is another host, even with an equal address. */
static void network_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	must_be_root();
	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	pair_sync(p);
	expect_quiet(n.cr);
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void network_client(struct pair *p)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET };
	struct listener listener;
	struct node n;

	network_make();
	node_open(&n);
	pair_recv_listener(p, &listener);
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&listener.address, &loopback, sizeof(loopback));
	n.ep = node_ep(&n, NULL);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	pair_sync(p);
	node_end(&n);
}

static void cable_server(struct pair *p)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	must_be_root();
	cable_lay(p);
	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	accept_one(p, &n, false);
	OK(dat_psp_free(psp));
	node_close(&n);
}

static void cable_client(struct pair *p)
{
	struct listener listener;
	struct node n;

	must_be_root();
	cable_lay(p);
	node_open(&n);
	pair_recv_listener(p, &listener);
	connect_one(p, &n, &listener, false);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("TCP connections are counted", NULL, counting),
	PAIR_CASE("by shared memory", run_setup, run_setup, .arg = &shared),
	PAIR_CASE("by shared memory, without reading the peer's memory", run_setup, run_setup,
		  .arg = &no_cma),
	PAIR_CASE("shared memory disabled in the server", run_setup, run_setup,
		  .arg = &server_disabled),
	PAIR_CASE("shared memory disabled in the client", run_setup, run_setup,
		  .arg = &client_disabled),
	PAIR_CASE("shared memory disabled in both", run_setup, run_setup, .arg = &both_disabled),
	PAIR_CASE("shared memory excluded by FI_PROVIDER", run_setup, run_setup, .arg = &excluded),
	PAIR_CASE("different users", run_setup, run_setup, .arg = &users),
	PAIR_CASE("different /dev/shm", run_setup, run_setup, .arg = &mounts),
	PAIR_CASE("different PID namespaces", run_setup, run_setup, .arg = &pids),
	PAIR_CASE("different IPC namespaces", run_setup, run_setup, .arg = &ipc),
	PAIR_CASE("only shared memory", shm_works, shm_works, .arg = &shared),
	PAIR_CASE("different users, only shared memory", shm_fails, shm_fails, .arg = &users),
	PAIR_CASE("different /dev/shm, only shared memory", shm_works, shm_works, .arg = &mounts),
	PAIR_CASE("different PID namespaces, only shared memory", shm_works, shm_works,
		  .arg = &pids),
	PAIR_CASE("different IPC namespaces, only shared memory", shm_works, shm_works,
		  .arg = &ipc),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("datagrams by shared memory", run_datagrams, run_datagrams, .arg = &shared),
	PAIR_CASE("datagrams, shared memory disabled in the server", run_datagrams, run_datagrams,
		  .arg = &server_disabled),
	PAIR_CASE("datagrams, shared memory disabled in the client", run_datagrams, run_datagrams,
		  .arg = &client_disabled),
	PAIR_CASE("datagrams, different users", run_datagrams, run_datagrams, .arg = &users),
	PAIR_CASE("datagrams, different PID namespaces", run_datagrams, run_datagrams,
		  .arg = &pids),
#endif
	PAIR_CASE("another user holds the socket name", squatted_server, squatted_client,
		  .arg = ""),
	PAIR_CASE("another program holds the socket name", squatted_server, squatted_client,
		  .arg = "SSH-2.0-x\n"),
	PAIR_CASE("a foreign client connects first", foreign_client_server, foreign_client_client),
	PAIR_CASE("different network namespaces", network_server, network_client),
	PAIR_CASE("different network namespaces with a cable", cable_server, cable_client),
};

int main(int argc, char **argv)
{
	setenv("DAT_TEST_IA", "ofi", 1);
	/* the cases look for TCP connections, which RDMA hardware does not make */
	setenv("FI_PROVIDER", "^verbs", 0);
	unsetenv("DAT_TEST_WARM");	/* the roles find different fabrics */
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
