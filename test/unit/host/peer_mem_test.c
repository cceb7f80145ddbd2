/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading a peer's memory: reads, refusals, and the effect of a peer's word that has
 * changed. Writing to it: which bytes, and in which order.
 */

#include "host/host.h"

#include "child.h"

#include <stdbool.h>
#include <sys/mman.h>

#define GRANTED 0x1122334455667788ull
#define SPACE 65536

/* A peer is a forked child. It has these arrays at identical addresses, with bytes of its own. */
static uint8_t memory[SPACE], got[SPACE];
static uint64_t *word;			/* shared with the peer */

/*
 * The kernel's process_vm_readv(), but a call moves at most @most bytes if that is not 0, and
 * between() runs before every call but the first.
 */
static size_t most;
static void (*between)(void);
static unsigned calls;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n,
				const struct iovec *from, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n,
				const struct iovec *from, unsigned long m, unsigned long flags);

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n,
				const struct iovec *from, unsigned long m, unsigned long flags)
{
	struct iovec part[DOFI_PEER_SEGMENTS + 1];
	size_t left = most;
	unsigned long i;

	if (calls++ && between)
		between();
	/* each call reads the word, after all else */
	cr_assert(from[m - 1].iov_len <= 8);
	cr_assert((uint8_t *)from[m - 1].iov_base + from[m - 1].iov_len == (uint8_t *)(word + 1));
	if (!most)
		return __real_process_vm_readv(pid, to, n, from, m, flags);
	for (i = 0; i < n && left; i++) {
		part[i] = to[i];
		if (part[i].iov_len > left)
			part[i].iov_len = left;
		left -= part[i].iov_len;
	}
	return __real_process_vm_readv(pid, part, i, from, m, flags);
}

/* The kernel's, which writes at most @most bytes per call. Segments are copied in their order. */
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
				 const struct iovec *to, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
				 const struct iovec *to, unsigned long m, unsigned long flags);

static struct iovec last_written;	/* the last segment of the last call */

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
				 const struct iovec *to, unsigned long m, unsigned long flags)
{
	struct iovec part = *to;

	calls++;
	cr_assert_eq(m, 1);
	last_written = from[n - 1];
	if (most && part.iov_len > most)
		part.iov_len = most;
	return __real_process_vm_writev(pid, from, n, &part, m, flags);
}

static void fill(uint8_t seed)
{
	int i;

	for (i = 0; i < SPACE; i++)
		memory[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static void peer(int fd)
{
	fill(1);
	say(fd, "", 1);
	child_rest(fd);
}

static struct child child;

static void init(void)
{
	char byte;

	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(word != MAP_FAILED);
	*word = GRANTED;
	child = child_start(peer);
	hear(child.fd, &byte, 1);
	fill(1);		/* the bytes of the peer, which are expected */
	memset(got, 0xee, sizeof(got));
}

static void fini(void)
{
	child_kill(&child);
}

TestSuite(peer_mem, .init = init, .fini = fini, .timeout = 30);

static int pull(const struct iovec *to, size_t n, const struct iovec *from, size_t m)
{
	const struct dofi_peer_word w = { (uintptr_t)word, GRANTED };

	return dofi_peer_pull(child.pid, to, n, from, m, &w);
}

static int pull_one(size_t len)
{
	const struct iovec to = { got, len }, from = { memory, len };

	return pull(&to, 1, &from, 1);
}

static bool is_clean(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at == 0xee)
		at++;
	return at == end;
}

Test(peer_mem, brings_the_bytes_and_no_more)
{
	cr_expect_eq(pull_one(60001), 0);
	cr_expect(!memcmp(got, memory, 60001));
	cr_expect(is_clean(got + 60001, got + SPACE));
	cr_expect_eq(calls, 1);
}

/* Both sides are cut differently, and some segments are empty. */
static void pulls_in_pieces(void)
{
	static const size_t ours[] = { 0, 1, 4095, 0, 20000, 8, 5000, 896 };
	static const size_t theirs[] = { 29000, 0, 7, 1, 985, 7, 0, 0 };
	struct iovec to[8], from[8];
	uint8_t *at = got;
	const uint8_t *there = memory + 11, *in_memory[8];
	size_t i, j = 0;

	for (i = 0; i < 8; i++) {
		to[i] = (struct iovec){ at, ours[i] };
		at += ours[i];
		from[i] = (struct iovec){ (void *)(uintptr_t)there, theirs[i] };
		in_memory[i] = there;
		there += theirs[i] + 13;
	}
	cr_expect_eq(pull(to, 8, from, 8), 0);
	for (i = 0; i < 8; j += theirs[i++])
		cr_expect(!memcmp(got + j, in_memory[i], theirs[i]), "piece %zu", i);
	cr_expect_eq(j, 30000);
	cr_expect(is_clean(got + j, got + SPACE));
}

Test(peer_mem, pieces_of_any_length)
{
	pulls_in_pieces();
	cr_expect_eq(calls, 1);
}

Test(peer_mem, goes_on_where_the_kernel_stopped)
{
	for (most = 1; most < 5000; most = most * 3 + 1) {
		calls = 0;
		memset(got, 0xee, sizeof(got));
		pulls_in_pieces();
		cr_expect(calls >= 30000 / most, "%u", calls);
	}
}

Test(peer_mem, nothing_is_brought_but_the_word_is_read)
{
	struct dofi_peer_word w = { (uintptr_t)word, GRANTED };

	cr_expect_eq(pull_one(0), 0);
	cr_expect_eq(dofi_peer_probe(child.pid, &w), 0);
	w.value++;
	cr_expect_eq(dofi_peer_probe(child.pid, &w), -ESTALE);
	w.value = GRANTED;
	cr_expect_eq(dofi_peer_probe(getpid(), &w), 0, "one may be one's own peer");
}

static void grant_ends(void)
{
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
}

Test(peer_mem, a_grant_that_ends_meanwhile_is_noticed)
{
	most = 1000;
	cr_expect_eq(pull_one(1999), 0);
	calls = 0;
	between = grant_ends;
	cr_expect_eq(pull_one(1999), -ESTALE);
	cr_expect_eq(calls, 3);
}

Test(peer_mem, what_cannot_be_is_refused)
{
	struct iovec nine[9], huge[5];
	int i;

	for (i = 0; i < 9; i++)
		nine[i] = (struct iovec){ got + i, 1 };
	cr_expect_eq(pull(nine, 9, nine, 9), -EINVAL);
	cr_expect_eq(pull(nine, 8, nine, 9), -EINVAL);
	cr_expect_eq(pull(nine, 8, nine, 7), -EINVAL, "not of one length");
	cr_expect_eq(pull(nine, 7, nine, 8), -EINVAL);
	cr_expect_eq(pull(NULL, 0, nine, 1), -EINVAL);
	for (i = 0; i < 4; i++)
		huge[i] = (struct iovec){ memory, SIZE_MAX / 4 + 1 };
	huge[4] = nine[0];
	cr_expect_eq(pull(nine, 1, huge, 5), -EINVAL, "the sum is one again");
	huge[0].iov_len = SIZE_MAX;
	cr_expect_eq(pull(nine, 1, huge, 1), -EINVAL);
	cr_expect_eq(calls, 0);
	cr_expect(is_clean(got, got + SPACE));
}

Test(peer_mem, what_the_peer_does_not_have_is_an_error)
{
	struct iovec to = { got, 5000 }, from = { NULL, 5000 };
	uint8_t *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);

	cr_expect_eq(pull(&to, 1, &from, 1), -EFAULT);
	from.iov_base = (void *)UINTPTR_MAX;
	cr_expect_eq(pull(&to, 1, &from, 1), -EFAULT);
	from.iov_base = (void *)(UINTPTR_MAX - 100);
	cr_expect_eq(pull(&to, 1, &from, 1), -EFAULT);
	cr_expect(is_clean(got, got + SPACE));
	/* another peer: one readable page, and then one without access */
	mprotect(hole + 4096, 4096, PROT_NONE);
	child_kill(&child);
	init();
	from.iov_base = hole;
	cr_expect_eq(pull(&to, 1, &from, 1), -EFAULT);
	cr_expect(is_clean(got + 4096, got + SPACE));
}

Test(peer_mem, memory_that_went_with_its_grant_is_no_error_of_its_own)
{
	struct iovec to = { got, 10 }, from = { NULL, 10 };

	between = grant_ends;
	cr_expect_eq(pull(&to, 1, &from, 1), -ESTALE);
	cr_expect_eq(calls, 2);
	cr_expect(is_clean(got, got + SPACE));
}

Test(peer_mem, a_peer_that_is_gone_is_an_error)
{
	struct dofi_peer_word w = { (uintptr_t)word, GRANTED };

	child_kill(&child);
	cr_expect_eq(pull_one(10), -ESRCH);
	cr_expect_eq(dofi_peer_probe(0, &w), -ESRCH);
	cr_expect_eq(dofi_peer_probe(-1, &w), -ESRCH);
	child = child_start(peer);
}

static void embryo(int fd)
{
	struct dofi_peer_word w = { (uintptr_t)word, GRANTED };
	int ret;

	cr_assert_eq(setuid(65534), 0);
	ret = dofi_peer_probe(getppid(), &w);
	say(fd, &ret, sizeof(ret));
}

Test(peer_mem, a_lack_of_permission_is_an_error)
{
	struct child c;
	int ret;

	if (geteuid()) {
		fprintf(stderr, "skipped: another user's memory: for root alone\n");
		return;
	}
	c = child_start(embryo);
	hear(c.fd, &ret, sizeof(ret));
	cr_expect_eq(ret, -EPERM);
	cr_expect_eq(child_end(&c), 0);
}

static void other_host(int fd)
{
	struct dofi_peer_word w = { (uintptr_t)word, GRANTED };
	int ret;

	child_enter_pid_space();
	/*
	 * Outside, process 1 has no such page. In here process 1 is this child, so it gets a page
	 * that is not shared.
	 */
	munmap(word, 4096);
	word = mmap(word, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ret = dofi_peer_probe(1, &w);
	say(fd, &ret, sizeof(ret));
}

Test(peer_mem, a_number_of_another_process_is_noticed)
{
	struct child c = child_start(other_host);
	int ret, status;

	if (recv(c.fd, &ret, sizeof(ret), MSG_WAITALL) == sizeof(ret))
		cr_expect_eq(ret, -ESTALE);
	status = child_end(&c);
	cr_expect(!status || WEXITSTATUS(status) == 77);
}

/* The test is its own peer here. */
static int push(const struct iovec *from, size_t n, size_t offset, size_t len)
{
	return dofi_peer_push(getpid(), from, n, offset, len, (uintptr_t)got);
}

Test(peer_mem, writes_the_bytes_and_no_more)
{
	const struct iovec from = { memory, SPACE };

	cr_expect_eq(push(&from, 1, 7, 60001), 0);
	cr_expect(!memcmp(got, memory + 7, 60001));
	cr_expect(is_clean(got + 60001, got + SPACE));
	cr_expect_eq(calls, 1);
	cr_expect_eq(push(&from, 1, SPACE, 0), 0);
	cr_expect_eq(calls, 1);
}

/* Every part of these segments, whole and piece by piece. */
Test(peer_mem, writes_any_part_of_any_segments)
{
	static const size_t lengths[] = { 0, 1, 2, 0, 40, 3, 1, 9 };
	struct iovec from[8];
	size_t offset, len, i, at = 0;

	for (i = 0; i < 8; at += lengths[i++])
		from[i] = (struct iovec){ memory + at, lengths[i] };
	for (most = 0; most < 20; most += 7)
		for (offset = 0; offset < at; offset++)
			for (len = 1; len <= at - offset; len++) {
				cr_assert_eq(push(from, 8, offset, len), 0);
				cr_assert(!memcmp(got, memory + offset, len));
				cr_assert(is_clean(got + len, got + at));
				memset(got, 0xee, len);
			}
}

/* The bytes of the last word are a segment of their own. */
Test(peer_mem, writes_the_last_word_last)
{
	const struct iovec from = { memory, SPACE };
	size_t len;

	for (len = 1; len < 100; len++) {
		const uint8_t *end = got + len;
		const size_t tail = len < 8 ? len : (uintptr_t)end % 8 ? (uintptr_t)end % 8 : 8;

		cr_assert_eq(push(&from, 1, 0, len), 0);
		cr_expect_eq(last_written.iov_base, memory + len - last_written.iov_len);
		cr_expect(last_written.iov_len <= tail || len <= 8, "%zu", len);
	}
}

Test(peer_mem, what_cannot_be_written_is_an_error)
{
	struct iovec nine[9];
	int i;

	for (i = 0; i < 9; i++)
		nine[i] = (struct iovec){ memory + i, 1 };
	cr_expect_eq(push(nine, 9, 0, 9), -EINVAL);
	cr_expect_eq(push(nine, 8, 0, 9), -EINVAL);
	cr_expect_eq(push(nine, 8, 4, 5), -EINVAL);
	cr_expect_eq(calls, 0);
	cr_expect_eq(dofi_peer_push(getpid(), nine, 8, 0, 8, 0), -EFAULT);
	cr_expect_eq(dofi_peer_push(-1, nine, 8, 0, 8, (uintptr_t)got), -ESRCH);
	cr_expect(is_clean(got, got + SPACE));
}

/* The last page is missing: the bytes before are written, as by hardware. */
Test(peer_mem, memory_that_is_missing_is_an_error)
{
	const struct iovec from = { memory, SPACE };
	uint8_t *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);

	mprotect(hole + 4096, 4096, PROT_READ);
	cr_expect_eq(dofi_peer_push(getpid(), &from, 1, 0, 8192, (uintptr_t)hole), -EFAULT);
	cr_expect(!memcmp(hole, memory, 4096));
	munmap(hole, 8192);
}
