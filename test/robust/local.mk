# Deaths, crowds, forks, threads and idleness, on the harness of the two-process tests.

robust_harness = test/robust/robust.c test/robust/robust.h $(pair_harness)

PAIR_TESTS += \
	test/robust/death1 \
	test/robust/death2 \
	test/robust/cycles1 \
	test/robust/cycles2 \
	test/robust/fork1 \
	test/robust/fork2 \
	test/robust/threads1 \
	test/robust/threads2 \
	test/robust/quiet1 \
	test/robust/quiet2 \
	test/robust/peers1 \
	test/robust/peers2 \
	test/robust/stranger1 \
	test/robust/stranger2

check_PROGRAMS += \
	test/robust/death1 \
	test/robust/death2 \
	test/robust/cycles1 \
	test/robust/cycles2 \
	test/robust/fork1 \
	test/robust/fork2 \
	test/robust/threads1 \
	test/robust/threads2 \
	test/robust/quiet1 \
	test/robust/quiet2 \
	test/robust/peers1 \
	test/robust/peers2 \
	test/robust/stranger1 \
	test/robust/stranger2

test_robust_death1_SOURCES = test/robust/death.c $(robust_harness)
test_robust_death1_CPPFLAGS = $(pair_cppflags1)
test_robust_death1_LDADD = libdat.la
test_robust_death2_SOURCES = test/robust/death.c $(robust_harness)
test_robust_death2_CPPFLAGS = $(pair_cppflags2)
test_robust_death2_LDADD = libdat2.la

test_robust_cycles1_SOURCES = test/robust/cycles.c $(robust_harness)
test_robust_cycles1_CPPFLAGS = $(pair_cppflags1)
test_robust_cycles1_LDADD = libdat.la
test_robust_cycles2_SOURCES = test/robust/cycles.c $(robust_harness)
test_robust_cycles2_CPPFLAGS = $(pair_cppflags2)
test_robust_cycles2_LDADD = libdat2.la

test_robust_fork1_SOURCES = test/robust/fork.c $(robust_harness)
test_robust_fork1_CPPFLAGS = $(pair_cppflags1)
test_robust_fork1_LDADD = libdat.la
test_robust_fork2_SOURCES = test/robust/fork.c $(robust_harness)
test_robust_fork2_CPPFLAGS = $(pair_cppflags2)
test_robust_fork2_LDADD = libdat2.la

test_robust_threads1_SOURCES = test/robust/threads.c $(robust_harness)
test_robust_threads1_CPPFLAGS = $(pair_cppflags1)
test_robust_threads1_LDADD = libdat.la
test_robust_threads2_SOURCES = test/robust/threads.c $(robust_harness)
test_robust_threads2_CPPFLAGS = $(pair_cppflags2)
test_robust_threads2_LDADD = libdat2.la

test_robust_quiet1_SOURCES = test/robust/quiet.c $(robust_harness)
test_robust_quiet1_CPPFLAGS = $(pair_cppflags1)
test_robust_quiet1_LDADD = libdat.la
test_robust_quiet2_SOURCES = test/robust/quiet.c $(robust_harness)
test_robust_quiet2_CPPFLAGS = $(pair_cppflags2)
test_robust_quiet2_LDADD = libdat2.la

test_robust_peers1_SOURCES = test/robust/peers.c $(robust_harness)
test_robust_peers1_CPPFLAGS = $(pair_cppflags1)
test_robust_peers1_LDADD = libdat.la
test_robust_peers2_SOURCES = test/robust/peers.c $(robust_harness)
test_robust_peers2_CPPFLAGS = $(pair_cppflags2)
test_robust_peers2_LDADD = libdat2.la

test_robust_stranger1_SOURCES = test/robust/stranger.c $(robust_harness)
test_robust_stranger1_CPPFLAGS = $(pair_cppflags1)
test_robust_stranger1_LDADD = libdat.la
test_robust_stranger2_SOURCES = test/robust/stranger.c $(robust_harness)
test_robust_stranger2_CPPFLAGS = $(pair_cppflags2)
test_robust_stranger2_LDADD = libdat2.la

# Run by hosts.sh alone.
check_PROGRAMS += test/robust/hosts1 test/robust/hosts2
test_robust_hosts1_SOURCES = test/robust/hosts.c $(pair_cable) $(robust_harness)
test_robust_hosts1_CPPFLAGS = $(pair_cppflags1)
test_robust_hosts1_LDADD = libdat.la
test_robust_hosts2_SOURCES = test/robust/hosts.c $(pair_cable) $(robust_harness)
test_robust_hosts2_CPPFLAGS = $(pair_cppflags2)
test_robust_hosts2_LDADD = libdat2.la

SLOW_TESTS += \
	test/robust/hosts.sh \
	test/robust/instructions.sh \
	test/robust/syscalls.sh \
	test/robust/fabrics.sh

EXTRA_DIST += \
	test/robust/fabrics.sh \
	test/robust/hosts.sh \
	test/robust/instructions.sh \
	test/robust/syscalls.sh
