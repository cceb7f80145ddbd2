# The conformance suite, for both API versions; it uses only dat_* calls.

# The runner is compiled once for each version; the examples use it, too.
check_LTLIBRARIES += test/conform/libconform1.la test/conform/libconform2.la
conform_library = \
	test/conform/conform.c \
	test/conform/conform.h \
	test/conform/couple.c \
	test/conform/object.c \
	test/conform/pending.c \
	test/conform/stage.c \
	test/conform/stage.h \
	test/conform/waiter.c

test_conform_libconform1_la_SOURCES = $(conform_library)
test_conform_libconform1_la_CPPFLAGS = $(pair_cppflags1)
test_conform_libconform2_la_SOURCES = $(conform_library)
test_conform_libconform2_la_CPPFLAGS = $(pair_cppflags2)
conform_ldadd1 = test/conform/libconform1.la $(pair_ldadd1)
conform_ldadd2 = test/conform/libconform2.la $(pair_ldadd2)

conform_sources = \
	test/conform/chapter_cno.c \
	test/conform/chapter_connect.c \
	test/conform/chapter_cr.c \
	test/conform/chapter_datagram.c \
	test/conform/chapter_dto.c \
	test/conform/chapter_ep.c \
	test/conform/chapter_evd.c \
	test/conform/chapter_flags.c \
	test/conform/chapter_handle.c \
	test/conform/chapter_ia.c \
	test/conform/chapter_lmr.c \
	test/conform/chapter_modify.c \
	test/conform/chapter_pz.c \
	test/conform/chapter_query.c \
	test/conform/chapter_registry.c \
	test/conform/chapter_request.c \
	test/conform/chapter_rmr.c \
	test/conform/chapter_sp.c \
	test/conform/chapter_srq.c \
	test/conform/chapter_state.c \
	test/conform/chapter_v2.c \
	test/conform/number.h

conform_programs = test/conform/conform1 test/conform/conform2
check_PROGRAMS += $(conform_programs)

test_conform_conform1_SOURCES = $(conform_sources)
test_conform_conform1_CPPFLAGS = $(pair_cppflags1)
test_conform_conform1_LDADD = $(conform_ldadd1)
test_conform_conform2_SOURCES = $(conform_sources)
test_conform_conform2_CPPFLAGS = $(pair_cppflags2)
test_conform_conform2_LDADD = $(conform_ldadd2)

# The runner itself: sanity2 has clauses that must fail, and sanity.sh checks that they do.
check_PROGRAMS += test/conform/sanity2
test_conform_sanity2_SOURCES = test/conform/self.c
test_conform_sanity2_CPPFLAGS = $(pair_cppflags2)
test_conform_sanity2_LDADD = $(conform_ldadd2)

# Over tcp also with sanitizers and under valgrind; over the other fabrics without.
CONFORM_TESTS += $(conform_programs) test/conform/returns.sh test/conform/sanity.sh \
	test/conform/strict.sh
SLOW_TESTS += \
	test/conform/both.sh \
	test/conform/rxm.sh \
	test/conform/shm.sh \
	test/conform/sockets.sh \
	test/conform/sockets-rdm.sh \
	test/conform/tcp-rdm.sh

LIBFABRIC_TESTS += \
	test/conform/both.sh \
	test/conform/rxm.sh \
	test/conform/shm.sh \
	test/conform/tcp-rdm.sh

EXTRA_DIST += \
	test/conform/both.sh \
	test/conform/fabric.sh \
	test/conform/returns.sh \
	test/conform/rxm.sh \
	test/conform/sanity.sh \
	test/conform/shm.sh \
	test/conform/sockets.sh \
	test/conform/sockets-rdm.sh \
	test/conform/strict.sh \
	test/conform/tcp-rdm.sh \
	test/conform/unprovoked

# Reports the clauses tried, passed and skipped, for each version and fabric.
conform: $(conform_programs) all
	@$(AM_TESTS_ENVIRONMENT) failed=0; for ia in ofi-tcp ofi-sockets ofi-rxm ofi-shm \
			ofi-sockets-rdm; do \
		for api in 1 2; do \
			test/conform/conform$$api --ia $$ia --thorough; \
			case $$? in 0|77) ;; *) failed=1 ;; esac; \
		done; \
	done; exit $$failed

.PHONY: conform
