# The conformance suite, for both API versions; it uses nothing but dat_* calls.

conform_runner = test/conform/conform.c test/conform/conform.h test/conform/couple.c \
	test/conform/object.c test/conform/waiter.c $(robust_harness)
conform_sources = $(conform_runner) \
	test/conform/chapter_cno.c \
	test/conform/chapter_connect.c \
	test/conform/chapter_cr.c \
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
	test/conform/number.h \
	test/conform/pending.c \
	test/conform/stage.c \
	test/conform/stage.h

conform_programs = test/conform/conform1 test/conform/conform2
check_PROGRAMS += $(conform_programs)

test_conform_conform1_SOURCES = $(conform_sources)
test_conform_conform1_CPPFLAGS = $(pair_cppflags1)
test_conform_conform1_LDADD = libdat.la
test_conform_conform2_SOURCES = $(conform_sources)
test_conform_conform2_CPPFLAGS = $(pair_cppflags2)
test_conform_conform2_LDADD = libdat2.la

# The runner itself: sanity2 has clauses that must fail, and sanity.sh sees to it that they do.
check_PROGRAMS += test/conform/sanity2
test_conform_sanity2_SOURCES = test/conform/self.c $(conform_runner)
test_conform_sanity2_CPPFLAGS = $(pair_cppflags2)
test_conform_sanity2_LDADD = libdat2.la

# Over tcp with sanitizers and under valgrind, too; over the other fabrics once.
CONFORM_TESTS += $(conform_programs) test/conform/returns.sh test/conform/sanity.sh
SLOW_TESTS += \
	test/conform/both.sh \
	test/conform/net.sh \
	test/conform/net-rdm.sh \
	test/conform/rxm.sh \
	test/conform/shm.sh \
	test/conform/sockets.sh \
	test/conform/sockets-rdm.sh \
	test/conform/tcp-rdm.sh

EXTRA_DIST += \
	test/conform/both.sh \
	test/conform/fabric.sh \
	test/conform/net.sh \
	test/conform/net-rdm.sh \
	test/conform/returns.sh \
	test/conform/rxm.sh \
	test/conform/sanity.sh \
	test/conform/shm.sh \
	test/conform/sockets.sh \
	test/conform/sockets-rdm.sh \
	test/conform/tcp-rdm.sh \
	test/conform/unprovoked

# What was tried, passed and skipped, for each version and fabric.
conform: $(conform_programs) all
	@$(AM_TESTS_ENVIRONMENT) failed=0; for ia in ofi-tcp ofi-sockets ofi-net ofi-net-rdm ofi-rxm \
			ofi-shm ofi-sockets-rdm; do \
		for api in 1 2; do \
			test/conform/conform$$api --ia $$ia --thorough; \
			case $$? in 0|77) ;; *) failed=1 ;; esac; \
		done; \
	done; exit $$failed

.PHONY: conform
