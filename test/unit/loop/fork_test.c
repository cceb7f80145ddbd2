/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A forked child finds every lock of our threads free. */

#include "loop/fork.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A thread that works in rounds and holds a lock during each. */
struct worker {
	struct dofi_fork_guard guard;
	pthread_mutex_t lock;		/* which a child would need */
	struct dofi_fork_fd fd;		/* opened and closed while the thread works */
	pthread_t thread;
	_Atomic unsigned rounds;
	_Atomic bool over;
};

static struct worker worker[2];

static void *work(void *arg)
{
	struct worker *w = arg;
	int i;

	while (!w->over) {
		dofi_fork_guard_work(&w->guard);
		pthread_mutex_lock(&w->lock);
		for (i = 0; i < 100; i++)
			sched_yield();
		/* a fork is likely to wait for this thread now */
		dofi_fork_fd_add(&w->fd);
		dofi_fork_fd_remove(&w->fd);
		pthread_mutex_unlock(&w->lock);
		w->rounds++;
		dofi_fork_guard_idle(&w->guard);
	}
	return NULL;
}

static void worker_start(struct worker *w)
{
	pthread_mutex_init(&w->lock, NULL);
	w->fd.fd = -1;
	w->over = false;
	dofi_fork_guard_add(&w->guard);
	cr_assert_eq(pthread_create(&w->thread, NULL, work, w), 0);
	while (!w->rounds)
		sched_yield();
}

static void worker_stop(struct worker *w)
{
	w->over = true;
	pthread_join(w->thread, NULL);
	dofi_fork_guard_remove(&w->guard);
}

static void forks_and_expects_free_locks(int workers)
{
	int status, i;
	pid_t pid = fork();

	if (!pid) {
		alarm(60);
		for (i = 0; i < workers; i++)
			pthread_mutex_lock(&worker[i].lock);
		_exit(0);
	}
	cr_assert(pid > 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%#x", status);
}

Test(fork, without_threads_nothing_is_waited_for, .timeout = 20)
{
	forks_and_expects_free_locks(0);
}

Test(fork, finds_every_thread_at_rest, .timeout = 60)
{
	int i;

	worker_start(&worker[0]);
	worker_start(&worker[1]);
	for (i = 0; i < 50; i++)
		forks_and_expects_free_locks(2);
	worker_stop(&worker[0]);
	worker_stop(&worker[1]);
}

Test(fork, threads_go_on_afterwards, .timeout = 20)
{
	unsigned before;

	worker_start(&worker[0]);
	forks_and_expects_free_locks(1);
	before = worker[0].rounds;
	while (worker[0].rounds == before)
		sched_yield();
	worker_stop(&worker[0]);
}

Test(fork, a_guard_that_was_removed_is_not_waited_for, .timeout = 20)
{
	worker_start(&worker[0]);
	worker_stop(&worker[0]);
	forks_and_expects_free_locks(1);
}

/* Without a thread in the child: ThreadSanitizer allows none there. */
Test(fork, a_child_has_guards_of_its_own, .timeout = 20)
{
	int status;
	pid_t pid;

	worker_start(&worker[0]);
	pid = fork();
	if (!pid) {
		alarm(60);
		dofi_fork_guard_add(&worker[1].guard);
		forks_and_expects_free_locks(1);
		dofi_fork_guard_remove(&worker[1].guard);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%#x", status);
	worker_stop(&worker[0]);
}

/* A consumer's upcall runs on a thread of ours and may fork. */
Test(fork, a_thread_may_fork_while_it_works, .timeout = 20)
{
	struct worker *w = &worker[0];

	dofi_fork_guard_add(&w->guard);
	dofi_fork_guard_work(&w->guard);
	forks_and_expects_free_locks(0);
	dofi_fork_guard_idle(&w->guard);
	dofi_fork_guard_remove(&w->guard);
}

/* A thread may be stuck in connect() of a fabric. The fork must not wait for it forever. */
Test(fork, is_not_held_up_by_a_thread_that_is_stuck, .timeout = 20)
{
	struct worker *w = &worker[0];

	worker_start(w);
	pthread_mutex_lock(&w->lock);
	forks_and_expects_free_locks(0);
	pthread_mutex_unlock(&w->lock);
	worker_stop(w);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(fork, a_child_does_not_have_what_it_must_not, .timeout = 20)
{
	struct dofi_fork_fd one = { .fd = dup(2) }, two = { .fd = dup(2) }, gone = { .fd = dup(2) };
	int status;
	pid_t pid;

	dofi_fork_fd_add(&one);
	dofi_fork_fd_add(&gone);
	dofi_fork_fd_add(&two);
	dofi_fork_fd_remove(&gone);
	pid = fork();
	if (!pid) {
		bool ok = !is_open(one.fd) && !is_open(two.fd) && is_open(gone.fd);

		/*
		 * a child of the child must not close them: the numbers may belong to other files
		 * by then
		 */
		dup2(2, one.fd);
		pid = fork();
		if (!pid)
			_exit(!ok || !is_open(one.fd));
		waitpid(pid, &status, 0);
		_exit(!!status);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect(is_open(one.fd));
	cr_expect(is_open(two.fd));
}
