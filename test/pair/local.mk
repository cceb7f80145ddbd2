# The two-process tests, each for both API versions.

pair_cppflags1 = $(AM_CPPFLAGS) -DDAT_API=1
pair_cppflags2 = $(AM_CPPFLAGS) -DDAT_API=2
pair_ldadd1 = test/pair/libpair1.la libdat.la
pair_ldadd2 = test/pair/libpair2.la libdat2.la

# The harness is compiled once for each version, as a library that all programs link.
check_LTLIBRARIES += test/pair/libpair1.la test/pair/libpair2.la
pair_library = \
	test/pair/cable.c \
	test/pair/cable.h \
	test/pair/node.c \
	test/pair/pair.c \
	test/pair/pair.h \
	test/robust/crew.c \
	test/robust/crew.h \
	test/robust/robust.c \
	test/robust/robust.h

test_pair_libpair1_la_SOURCES = $(pair_library)
test_pair_libpair1_la_CPPFLAGS = $(pair_cppflags1)
test_pair_libpair2_la_SOURCES = $(pair_library)
test_pair_libpair2_la_CPPFLAGS = $(pair_cppflags2)

pair_programs = \
	test/pair/connect1 \
	test/pair/connect2 \
	test/pair/passive1 \
	test/pair/passive2 \
	test/pair/qualifier1 \
	test/pair/qualifier2 \
	test/pair/foreign1 \
	test/pair/foreign2 \
	test/pair/reasons1 \
	test/pair/reasons2 \
	test/pair/disconnect1 \
	test/pair/disconnect2 \
	test/pair/linger1 \
	test/pair/linger2 \
	test/pair/data1 \
	test/pair/data2 \
	test/pair/rdma1 \
	test/pair/rdma2 \
	test/pair/errors1 \
	test/pair/errors2 \
	test/pair/events1 \
	test/pair/events2 \
	test/pair/mixed1 \
	test/pair/mixed2 \
	test/pair/cno1 \
	test/pair/cno2 \
	test/pair/modify1 \
	test/pair/modify2 \
	test/pair/rmr1 \
	test/pair/rmr2 \
	test/pair/memory1 \
	test/pair/memory2 \
	test/pair/freed1 \
	test/pair/freed2 \
	test/pair/pz1 \
	test/pair/pz2 \
	test/pair/invalidate2 \
	test/pair/ext2 \
	test/pair/limits1 \
	test/pair/limits2 \
	test/pair/srq1 \
	test/pair/srq2 \
	test/pair/datagram2

# These name the IA themselves.
within_host = test/pair/local1 test/pair/local2 test/pair/alone1 test/pair/alone2

check_PROGRAMS += $(within_host) $(pair_programs)
PAIR_TESTS += $(within_host) $(pair_programs)

test_pair_alone1_SOURCES = test/pair/alone.c
test_pair_alone1_CPPFLAGS = $(pair_cppflags1)
test_pair_alone1_LDADD = $(pair_ldadd1)
test_pair_alone2_SOURCES = test/pair/alone.c
test_pair_alone2_CPPFLAGS = $(pair_cppflags2)
test_pair_alone2_LDADD = $(pair_ldadd2)

test_pair_connect1_SOURCES = test/pair/connect.c
test_pair_connect1_CPPFLAGS = $(pair_cppflags1)
test_pair_connect1_LDADD = $(pair_ldadd1)
test_pair_connect2_SOURCES = test/pair/connect.c
test_pair_connect2_CPPFLAGS = $(pair_cppflags2)
test_pair_connect2_LDADD = $(pair_ldadd2)

test_pair_passive1_SOURCES = test/pair/passive.c
test_pair_passive1_CPPFLAGS = $(pair_cppflags1)
test_pair_passive1_LDADD = $(pair_ldadd1)
test_pair_passive2_SOURCES = test/pair/passive.c
test_pair_passive2_CPPFLAGS = $(pair_cppflags2)
test_pair_passive2_LDADD = $(pair_ldadd2)

test_pair_qualifier1_SOURCES = test/pair/qualifier.c
test_pair_qualifier1_CPPFLAGS = $(pair_cppflags1)
test_pair_qualifier1_LDADD = $(pair_ldadd1)
test_pair_qualifier2_SOURCES = test/pair/qualifier.c
test_pair_qualifier2_CPPFLAGS = $(pair_cppflags2)
test_pair_qualifier2_LDADD = $(pair_ldadd2)

test_pair_reasons1_SOURCES = test/pair/reasons.c
test_pair_reasons1_CPPFLAGS = $(pair_cppflags1)
test_pair_reasons1_LDADD = $(pair_ldadd1)
test_pair_reasons2_SOURCES = test/pair/reasons.c
test_pair_reasons2_CPPFLAGS = $(pair_cppflags2)
test_pair_reasons2_LDADD = $(pair_ldadd2)
test_pair_foreign1_SOURCES = test/pair/foreign.c
test_pair_foreign1_CPPFLAGS = $(pair_cppflags1) $(LIBFABRIC_CFLAGS)
test_pair_foreign1_LDADD = $(pair_ldadd1) $(LIBFABRIC_LIBS)
test_pair_foreign2_SOURCES = test/pair/foreign.c
test_pair_foreign2_CPPFLAGS = $(pair_cppflags2) $(LIBFABRIC_CFLAGS)
test_pair_foreign2_LDADD = $(pair_ldadd2) $(LIBFABRIC_LIBS)

test_pair_disconnect1_SOURCES = test/pair/disconnect.c
test_pair_disconnect1_CPPFLAGS = $(pair_cppflags1)
test_pair_disconnect1_LDADD = $(pair_ldadd1)
test_pair_disconnect2_SOURCES = test/pair/disconnect.c
test_pair_disconnect2_CPPFLAGS = $(pair_cppflags2)
test_pair_disconnect2_LDADD = $(pair_ldadd2)

test_pair_linger1_SOURCES = test/pair/linger.c
test_pair_linger1_CPPFLAGS = $(pair_cppflags1)
test_pair_linger1_LDADD = $(pair_ldadd1)
test_pair_linger2_SOURCES = test/pair/linger.c
test_pair_linger2_CPPFLAGS = $(pair_cppflags2)
test_pair_linger2_LDADD = $(pair_ldadd2)

test_pair_local1_SOURCES = test/pair/local.c
test_pair_local1_CPPFLAGS = $(pair_cppflags1)
test_pair_local1_LDADD = $(pair_ldadd1)
test_pair_local2_SOURCES = test/pair/local.c
test_pair_local2_CPPFLAGS = $(pair_cppflags2)
test_pair_local2_LDADD = $(pair_ldadd2)

test_pair_data1_SOURCES = test/pair/data.c
test_pair_data1_CPPFLAGS = $(pair_cppflags1)
test_pair_data1_LDADD = $(pair_ldadd1)
test_pair_data2_SOURCES = test/pair/data.c
test_pair_data2_CPPFLAGS = $(pair_cppflags2)
test_pair_data2_LDADD = $(pair_ldadd2)

test_pair_rdma1_SOURCES = test/pair/rdma.c
test_pair_rdma1_CPPFLAGS = $(pair_cppflags1)
test_pair_rdma1_LDADD = $(pair_ldadd1)
test_pair_rdma2_SOURCES = test/pair/rdma.c
test_pair_rdma2_CPPFLAGS = $(pair_cppflags2)
test_pair_rdma2_LDADD = $(pair_ldadd2)

test_pair_errors1_SOURCES = test/pair/errors.c
test_pair_errors1_CPPFLAGS = $(pair_cppflags1)
test_pair_errors1_LDADD = $(pair_ldadd1)
test_pair_errors2_SOURCES = test/pair/errors.c
test_pair_errors2_CPPFLAGS = $(pair_cppflags2)
test_pair_errors2_LDADD = $(pair_ldadd2)

test_pair_events1_SOURCES = test/pair/events.c
test_pair_events1_CPPFLAGS = $(pair_cppflags1)
test_pair_events1_LDADD = $(pair_ldadd1)
test_pair_events2_SOURCES = test/pair/events.c
test_pair_events2_CPPFLAGS = $(pair_cppflags2)
test_pair_events2_LDADD = $(pair_ldadd2)

test_pair_mixed1_SOURCES = test/pair/mixed.c
test_pair_mixed1_CPPFLAGS = $(pair_cppflags1)
test_pair_mixed1_LDADD = $(pair_ldadd1)
test_pair_mixed2_SOURCES = test/pair/mixed.c
test_pair_mixed2_CPPFLAGS = $(pair_cppflags2)
test_pair_mixed2_LDADD = $(pair_ldadd2)

test_pair_cno1_SOURCES = test/pair/cno.c
test_pair_cno1_CPPFLAGS = $(pair_cppflags1)
test_pair_cno1_LDADD = $(pair_ldadd1)
test_pair_cno2_SOURCES = test/pair/cno.c
test_pair_cno2_CPPFLAGS = $(pair_cppflags2)
test_pair_cno2_LDADD = $(pair_ldadd2)

test_pair_modify1_SOURCES = test/pair/modify.c
test_pair_modify1_CPPFLAGS = $(pair_cppflags1)
test_pair_modify1_LDADD = $(pair_ldadd1)
test_pair_modify2_SOURCES = test/pair/modify.c
test_pair_modify2_CPPFLAGS = $(pair_cppflags2)
test_pair_modify2_LDADD = $(pair_ldadd2)

test_pair_rmr1_SOURCES = test/pair/rmr.c
test_pair_rmr1_CPPFLAGS = $(pair_cppflags1)
test_pair_rmr1_LDADD = $(pair_ldadd1)
test_pair_rmr2_SOURCES = test/pair/rmr.c
test_pair_rmr2_CPPFLAGS = $(pair_cppflags2)
test_pair_rmr2_LDADD = $(pair_ldadd2)

test_pair_memory1_SOURCES = test/pair/memory.c
test_pair_memory1_CPPFLAGS = $(pair_cppflags1)
test_pair_memory1_LDADD = $(pair_ldadd1)
test_pair_memory2_SOURCES = test/pair/memory.c
test_pair_memory2_CPPFLAGS = $(pair_cppflags2)
test_pair_memory2_LDADD = $(pair_ldadd2)

test_pair_freed1_SOURCES = test/pair/freed.c
test_pair_freed1_CPPFLAGS = $(pair_cppflags1)
test_pair_freed1_LDADD = $(pair_ldadd1)
test_pair_freed2_SOURCES = test/pair/freed.c
test_pair_freed2_CPPFLAGS = $(pair_cppflags2)
test_pair_freed2_LDADD = $(pair_ldadd2)

test_pair_pz1_SOURCES = test/pair/pz.c
test_pair_pz1_CPPFLAGS = $(pair_cppflags1)
test_pair_pz1_LDADD = $(pair_ldadd1)
test_pair_pz2_SOURCES = test/pair/pz.c
test_pair_pz2_CPPFLAGS = $(pair_cppflags2)
test_pair_pz2_LDADD = $(pair_ldadd2)

test_pair_invalidate2_SOURCES = test/pair/invalidate.c
test_pair_invalidate2_CPPFLAGS = $(pair_cppflags2)
test_pair_invalidate2_LDADD = $(pair_ldadd2)

# 1.2 has no extensions.
test_pair_datagram2_SOURCES = test/pair/datagram.c test/pair/datagram.h
test_pair_datagram2_CPPFLAGS = $(pair_cppflags2)
test_pair_datagram2_LDADD = $(pair_ldadd2)

test_pair_ext2_SOURCES = test/pair/ext.c
test_pair_ext2_CPPFLAGS = $(pair_cppflags2)
test_pair_ext2_LDADD = $(pair_ldadd2)

test_pair_limits1_SOURCES = test/pair/limits.c
test_pair_limits1_CPPFLAGS = $(pair_cppflags1)
test_pair_limits1_LDADD = $(pair_ldadd1)
test_pair_limits2_SOURCES = test/pair/limits.c
test_pair_limits2_CPPFLAGS = $(pair_cppflags2)
test_pair_limits2_LDADD = $(pair_ldadd2)

test_pair_srq1_SOURCES = test/pair/srq.c
test_pair_srq1_CPPFLAGS = $(pair_cppflags1)
test_pair_srq1_LDADD = $(pair_ldadd1)
test_pair_srq2_SOURCES = test/pair/srq.c
test_pair_srq2_CPPFLAGS = $(pair_cppflags2)
test_pair_srq2_LDADD = $(pair_ldadd2)

# Over libfabric's other software fabrics.
SLOW_TESTS += \
	test/pair/both.sh \
	test/pair/rxm.sh \
	test/pair/shm.sh \
	test/pair/shm-frames.sh \
	test/pair/shm-rdm.sh \
	test/pair/sockets.sh \
	test/pair/sockets-rdm.sh \
	test/pair/tcp-rdm.sh

SLOW_TESTS += test/pair/cold.sh
LIBFABRIC_TESTS += \
	test/pair/both.sh \
	test/pair/cold.sh \
	test/pair/rxm.sh \
	test/pair/shm.sh \
	test/pair/shm-rdm.sh \
	test/pair/tcp-rdm.sh

EXTRA_DIST += \
	test/pair/both.sh \
	test/pair/cold.sh \
	test/pair/fabric.sh \
	test/pair/rxm.sh \
	test/pair/shm.sh \
	test/pair/shm-frames.sh \
	test/pair/shm-rdm.sh \
	test/pair/sockets.sh \
	test/pair/sockets-rdm.sh \
	test/pair/tcp-rdm.sh

# The harness itself: sanity2 has cases that must fail, and sanity.sh checks that they do.
PAIR_TESTS += test/pair/sanity.sh
check_PROGRAMS += test/pair/sanity2
test_pair_sanity2_SOURCES = test/pair/sanity.c
test_pair_sanity2_CPPFLAGS = $(pair_cppflags2)
test_pair_sanity2_LDADD = $(pair_ldadd2)

EXTRA_DIST += test/pair/sanity.sh
