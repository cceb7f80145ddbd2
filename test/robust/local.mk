# Deaths, crowds, forks, threads and idleness, on the harness of the two-process tests.

ROBUST_TESTS += \
	test/robust/death1 \
	test/robust/death2 \
	test/robust/cycles1 \
	test/robust/cycles2 \
	test/robust/fork1 \
	test/robust/fork2 \
	test/robust/handles1 \
	test/robust/handles2 \
	test/robust/std_fds1 \
	test/robust/std_fds2 \
	test/robust/environ1 \
	test/robust/environ2 \
	test/robust/inherit1 \
	test/robust/inherit2 \
	test/robust/threads1 \
	test/robust/threads2 \
	test/robust/waits1 \
	test/robust/waits2 \
	test/robust/quiet1 \
	test/robust/quiet2 \
	test/robust/peers1 \
	test/robust/peers2 \
	test/robust/foreign_client1 \
	test/robust/foreign_client2 \
	test/robust/crowd1 \
	test/robust/crowd2 \
	test/robust/datagrams2 \
	test/robust/many1 \
	test/robust/many2 \
	test/robust/scribble1 \
	test/robust/scribble2

check_PROGRAMS += \
	test/robust/death1 \
	test/robust/death2 \
	test/robust/cycles1 \
	test/robust/cycles2 \
	test/robust/fork1 \
	test/robust/fork2 \
	test/robust/handles1 \
	test/robust/handles2 \
	test/robust/std_fds1 \
	test/robust/std_fds2 \
	test/robust/environ1 \
	test/robust/environ2 \
	test/robust/inherit1 \
	test/robust/inherit2 \
	test/robust/threads1 \
	test/robust/threads2 \
	test/robust/waits1 \
	test/robust/waits2 \
	test/robust/quiet1 \
	test/robust/quiet2 \
	test/robust/peers1 \
	test/robust/peers2 \
	test/robust/foreign_client1 \
	test/robust/foreign_client2 \
	test/robust/crowd1 \
	test/robust/crowd2 \
	test/robust/datagrams2 \
	test/robust/many1 \
	test/robust/many2 \
	test/robust/scribble1 \
	test/robust/scribble2

test_robust_death1_SOURCES = test/robust/death.c
test_robust_death1_CPPFLAGS = $(pair_cppflags1)
test_robust_death1_LDADD = $(pair_ldadd1)
test_robust_death2_SOURCES = test/robust/death.c
test_robust_death2_CPPFLAGS = $(pair_cppflags2)
test_robust_death2_LDADD = $(pair_ldadd2)

test_robust_cycles1_SOURCES = test/robust/cycles.c
test_robust_cycles1_CPPFLAGS = $(pair_cppflags1)
test_robust_cycles1_LDADD = $(pair_ldadd1)
test_robust_cycles2_SOURCES = test/robust/cycles.c
test_robust_cycles2_CPPFLAGS = $(pair_cppflags2)
test_robust_cycles2_LDADD = $(pair_ldadd2)

test_robust_fork1_SOURCES = test/robust/fork.c
test_robust_fork1_CPPFLAGS = $(pair_cppflags1)
test_robust_fork1_LDADD = $(pair_ldadd1)
test_robust_fork2_SOURCES = test/robust/fork.c
test_robust_fork2_CPPFLAGS = $(pair_cppflags2)
test_robust_fork2_LDADD = $(pair_ldadd2)

test_robust_handles1_SOURCES = test/robust/handles.c
test_robust_handles1_CPPFLAGS = $(pair_cppflags1)
test_robust_handles1_LDADD = $(pair_ldadd1)
test_robust_handles2_SOURCES = test/robust/handles.c
test_robust_handles2_CPPFLAGS = $(pair_cppflags2)
test_robust_handles2_LDADD = $(pair_ldadd2)

test_robust_std_fds1_SOURCES = test/robust/std_fds.c
test_robust_std_fds1_CPPFLAGS = $(pair_cppflags1)
test_robust_std_fds1_LDADD = $(pair_ldadd1)
test_robust_std_fds2_SOURCES = test/robust/std_fds.c
test_robust_std_fds2_CPPFLAGS = $(pair_cppflags2)
test_robust_std_fds2_LDADD = $(pair_ldadd2)

test_robust_environ1_SOURCES = test/robust/environ.c
test_robust_environ1_CPPFLAGS = $(pair_cppflags1)
test_robust_environ1_LDADD = $(pair_ldadd1)
test_robust_environ2_SOURCES = test/robust/environ.c
test_robust_environ2_CPPFLAGS = $(pair_cppflags2)
test_robust_environ2_LDADD = $(pair_ldadd2)

test_robust_inherit1_SOURCES = test/robust/inherit.c
test_robust_inherit1_CPPFLAGS = $(pair_cppflags1)
test_robust_inherit1_LDADD = $(pair_ldadd1)
test_robust_inherit2_SOURCES = test/robust/inherit.c
test_robust_inherit2_CPPFLAGS = $(pair_cppflags2)
test_robust_inherit2_LDADD = $(pair_ldadd2)

test_robust_threads1_SOURCES = test/robust/threads.c
test_robust_threads1_CPPFLAGS = $(pair_cppflags1)
test_robust_threads1_LDADD = $(pair_ldadd1)
test_robust_threads2_SOURCES = test/robust/threads.c
test_robust_threads2_CPPFLAGS = $(pair_cppflags2)
test_robust_threads2_LDADD = $(pair_ldadd2)

test_robust_waits1_SOURCES = test/robust/waits.c
test_robust_waits1_CPPFLAGS = $(pair_cppflags1)
test_robust_waits1_LDADD = $(pair_ldadd1)
test_robust_waits2_SOURCES = test/robust/waits.c
test_robust_waits2_CPPFLAGS = $(pair_cppflags2)
test_robust_waits2_LDADD = $(pair_ldadd2)

test_robust_quiet1_SOURCES = test/robust/quiet.c
test_robust_quiet1_CPPFLAGS = $(pair_cppflags1)
test_robust_quiet1_LDADD = $(pair_ldadd1)
test_robust_quiet2_SOURCES = test/robust/quiet.c
test_robust_quiet2_CPPFLAGS = $(pair_cppflags2)
test_robust_quiet2_LDADD = $(pair_ldadd2)

test_robust_peers1_SOURCES = test/robust/peers.c
test_robust_peers1_CPPFLAGS = $(pair_cppflags1)
test_robust_peers1_LDADD = $(pair_ldadd1)
test_robust_peers2_SOURCES = test/robust/peers.c
test_robust_peers2_CPPFLAGS = $(pair_cppflags2)
test_robust_peers2_LDADD = $(pair_ldadd2)

test_robust_foreign_client1_SOURCES = test/robust/foreign_client.c
test_robust_foreign_client1_CPPFLAGS = $(pair_cppflags1)
test_robust_foreign_client1_LDADD = $(pair_ldadd1)
test_robust_foreign_client2_SOURCES = test/robust/foreign_client.c
test_robust_foreign_client2_CPPFLAGS = $(pair_cppflags2)
test_robust_foreign_client2_LDADD = $(pair_ldadd2)

test_robust_crowd1_SOURCES = test/robust/crowd.c
test_robust_crowd1_CPPFLAGS = $(pair_cppflags1)
test_robust_crowd1_LDADD = $(pair_ldadd1)
test_robust_crowd2_SOURCES = test/robust/crowd.c
test_robust_crowd2_CPPFLAGS = $(pair_cppflags2)
test_robust_crowd2_LDADD = $(pair_ldadd2)
test_robust_datagrams2_SOURCES = test/robust/datagrams.c test/pair/datagram.h
test_robust_datagrams2_CPPFLAGS = $(pair_cppflags2)
test_robust_datagrams2_LDADD = $(pair_ldadd2)
test_robust_many1_SOURCES = test/robust/many.c
test_robust_many1_CPPFLAGS = $(pair_cppflags1)
test_robust_many1_LDADD = $(pair_ldadd1)
test_robust_many2_SOURCES = test/robust/many.c
test_robust_many2_CPPFLAGS = $(pair_cppflags2)
test_robust_many2_LDADD = $(pair_ldadd2)

test_robust_scribble1_SOURCES = test/robust/scribble.c
test_robust_scribble1_CPPFLAGS = $(pair_cppflags1)
test_robust_scribble1_LDADD = $(pair_ldadd1)
test_robust_scribble2_SOURCES = test/robust/scribble.c
test_robust_scribble2_CPPFLAGS = $(pair_cppflags2)
test_robust_scribble2_LDADD = $(pair_ldadd2)

# Also measures larger crowds: see the program. The test is a small one.
check_PROGRAMS += test/robust/ud_scale2
test_robust_ud_scale2_SOURCES = test/robust/ud_scale.c
test_robust_ud_scale2_CPPFLAGS = $(pair_cppflags2)
test_robust_ud_scale2_LDADD = $(pair_ldadd2)

# Run by eager.sh only.
check_PROGRAMS += test/robust/eager2
test_robust_eager2_SOURCES = test/robust/eager.c
test_robust_eager2_CPPFLAGS = $(pair_cppflags2)
test_robust_eager2_LDADD = $(pair_ldadd2)
check_LTLIBRARIES += test/robust/preempt.la
test_robust_preempt_la_SOURCES = test/robust/preempt.c
test_robust_preempt_la_CFLAGS = $(AM_CFLAGS) -fno-builtin
test_robust_preempt_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere

# Measures more processes, too.
check_PROGRAMS += test/robust/mesh2
test_robust_mesh2_SOURCES = test/robust/mesh.c
test_robust_mesh2_CPPFLAGS = $(pair_cppflags2)
test_robust_mesh2_LDADD = $(pair_ldadd2)

# Run by hosts.sh only.
check_PROGRAMS += test/robust/hosts1 test/robust/hosts2
test_robust_hosts1_SOURCES = test/robust/hosts.c
test_robust_hosts1_CPPFLAGS = $(pair_cppflags1)
test_robust_hosts1_LDADD = $(pair_ldadd1)
test_robust_hosts2_SOURCES = test/robust/hosts.c
test_robust_hosts2_CPPFLAGS = $(pair_cppflags2)
test_robust_hosts2_LDADD = $(pair_ldadd2)

# Has a registry of its own, which reads the build's dat.conf, as privileged programs ignore
# DAT_OVERRIDE.
check_PROGRAMS += test/robust/privileged
test_robust_privileged_SOURCES = test/robust/privileged.c $(registry_sources)
test_robust_privileged_CPPFLAGS = $(pair_cppflags2) \
	-DDAT_CONFDIR='"$(abs_top_builddir)/test"' -DDAT_LIBDIR='"$(libdir)"'
test_robust_privileged_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
check_PROGRAMS += test/robust/shortage
test_robust_shortage_SOURCES = test/robust/shortage.c
test_robust_shortage_CPPFLAGS = $(pair_cppflags2)
test_robust_shortage_LDADD = libdat2.la
check_LTLIBRARIES += test/robust/attacker.la
test_robust_attacker_la_SOURCES = test/robust/attacker.c
test_robust_attacker_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere

SLOW_TESTS += \
	test/robust/crowd-both.sh \
	test/robust/datagrams-both.sh \
	test/robust/deaths-both.sh \
	test/robust/deaths-shm.sh \
	test/robust/eager.sh \
	test/robust/hosts.sh \
	test/robust/instructions.sh \
	test/robust/privileged.sh \
	test/robust/rxm.sh \
	test/robust/shm.sh \
	test/robust/shortage.sh \
	test/robust/sockets.sh \
	test/robust/syscalls.sh \
	test/robust/ud_scale.sh

LIBFABRIC_TESTS += \
	test/robust/crowd-both.sh \
	test/robust/datagrams-both.sh \
	test/robust/deaths-both.sh \
	test/robust/deaths-shm.sh \
	test/robust/eager.sh \
	test/robust/privileged.sh \
	test/robust/rxm.sh \
	test/robust/shm.sh \
	test/robust/shortage.sh \
	test/robust/ud_scale.sh

EXTRA_DIST += \
	test/robust/crowd-both.sh \
	test/robust/datagrams-both.sh \
	test/robust/deaths-both.sh \
	test/robust/deaths-shm.sh \
	test/robust/deaths.sh \
	test/robust/eager.sh \
	test/robust/fabric.sh \
	test/robust/hosts.sh \
	test/robust/instructions.sh \
	test/robust/privileged.sh \
	test/robust/rxm.sh \
	test/robust/shm.sh \
	test/robust/shortage.sh \
	test/robust/sockets.sh \
	test/robust/syscalls.sh \
	test/robust/tap.sh \
	test/robust/ud_scale.sh
