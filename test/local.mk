# How tests are run; and the tests that belong to no single area.

ABI_TESTS += \
	test/abi/symbols.sh \
	test/man.sh \
	contrib/check-docs \
	contrib/check-layers \
	contrib/check-words

# In a variable, because contrib/quickstart runs this test in "make distcheck" only.
INSTALL_TESTS = test/install.sh
SLOW_TESTS += test/bench.sh $(INSTALL_TESTS)

EXTRA_DIST += \
	contrib/check-docs \
	contrib/check-layers \
	contrib/check-words \
	test/alternate \
	test/abi/symbols.sh \
	test/bench.sh \
	test/bench_runs_test.py \
	test/bench_tables_test.py \
	test/callgrind.sh \
	test/install.sh \
	test/man.sh \
	test/run \
	test/lsan.supp \
	test/tsan.supp \
	test/valgrind.supp

# Optimising the tests that do not stream data or measure would take more than half of a build's time.
# CHECK_CFLAGS is empty where the user chose CFLAGS alone.
unoptimised = test/conform/%.o test/conform/%.lo test/examples/%.o docs/examples/%.o test/fuzz/%.o test/unit/%.o \
	test/unit/%.lo src/test_%.o util/test_%.o
$(unoptimised): CFLAGS += $(CHECK_CFLAGS)

# Fakes, stubs and callbacks have the parameters of what they stand for.
test/%.o test/%.lo: CFLAGS += -Wno-unused-parameter

# The dat.conf of the build tree, so that programs run without an installation.
noinst_DATA += test/dat.conf
CLEANFILES += test/dat.conf

test/dat.conf: contrib/dat.conf.in Makefile
	$(AM_V_GEN)$(MKDIR_P) test && \
	$(SED) -e 's|@provdir1@|$(abs_top_builddir)/prov/ofi/v1/.libs|' \
		-e 's|@provdir2@|$(abs_top_builddir)/prov/ofi/v2/.libs|' \
		$(top_srcdir)/contrib/dat.conf.in >$@.tmp && mv $@.tmp $@

# The environment of every test. TEST_RUNNER is a command, such as valgrind, under
# which programs run: test/run puts it before test programs, and scripts put it before the
# programs that they start.
#
# libfabric is built without ThreadSanitizer. The memory that a peer's RDMA reaches is written in
# there while the program polls it, as DAT allows; so its callees are no part of a race.
#
# AddressSanitizer guesses the extent of a loaded library's thread-local memory from the data before
# it; LeakSanitizer crashed on a guess (GCC 12). That memory owns nothing here, so it is left out.
TEST_RUNNER =
TEST_TIMEOUT =
AM_TESTS_ENVIRONMENT = \
	srcdir='$(srcdir)'; export srcdir; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	DAT_OVERRIDE='$(abs_top_builddir)/test/dat.conf'; export DAT_OVERRIDE; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	TEST_RUNNER='$(TEST_RUNNER)'; export TEST_RUNNER; \
	TEST_TIMEOUT='$(TEST_TIMEOUT)'; export TEST_TIMEOUT; \
	TSAN_OPTIONS="ignore_noninstrumented_modules=1:suppressions=$(abs_top_srcdir)/test/tsan.supp:$$TSAN_OPTIONS"; \
	export TSAN_OPTIONS; \
	ASAN_OPTIONS="intercept_tls_get_addr=0:$$ASAN_OPTIONS"; export ASAN_OPTIONS; \
	LSAN_OPTIONS="suppressions=$(abs_top_srcdir)/test/lsan.supp:print_suppressions=0:$$LSAN_OPTIONS"; \
	export LSAN_OPTIONS; \
	IPATH_NO_BACKTRACE=1; export IPATH_NO_BACKTRACE;

LOG_COMPILER = $(SHELL) $(top_srcdir)/test/run

# Prints the tests and programs of a list with one API version each.
alternate = $(SHELL) $(top_srcdir)/test/alternate

# The tests of the libraries, each with one API version, as are the programs that are compiled; scripts
# need both versions of the conformance suite and the examples. ALTERNATE=2 chooses the other versions,
# ALTERNATE_TESTS the tests that follow the unit tests.
ALTERNATE = 1
ALTERNATE_TESTS = $(PAIR_TESTS) $(ROBUST_TESTS) $(CONFORM_TESTS)

check-alternate:
	tests=`$(alternate) $(ALTERNATE) test/unit/src/handle_threads $(PROV_UNIT_TESTS) \
		$(ALTERNATE_TESTS)` && programs=`$(alternate) $(ALTERNATE) $(check_PROGRAMS)` && \
		DAT_TEST_WARM=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS="`echo $$tests`" \
		check_PROGRAMS="`echo $$programs $(conform_programs) $(examples_programs) $(hello_programs)`"

# The tests for which a sanitizer build is worth its time: those that run our code in programs of our
# own. Debian's programs would have to load a sanitizer first. Of the two-process tests,
# check-valgrind runs the other API version. Checkers are slow where libfabric looks for devices: once
# for each program (test/pair/pair.h).
check-sanitized:
	$(MAKE) $(AM_MAKEFLAGS) check-alternate ALTERNATE_TESTS='$(ALTERNATE_TESTS) $(registry_unit_tests) $(UTIL_TESTS)'

# The two-process tests and the conformance suite under valgrind, with one API version. What it
# calls possibly lost is libfabric's lists, which point into the middle of their elements, in the
# cases that end a process with all open. Its threads run one at a time; fairly, or a polling thread
# keeps the progress thread from running.
VALGRIND_COMMAND = $(VALGRIND) --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full \
	--show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
	--suppressions=$(abs_top_srcdir)/test/valgrind.supp

check-valgrind:
	test -n '$(VALGRIND)' || { echo 'valgrind was not found by configure'; exit 1; }
	tests=`$(alternate) 2 $(PAIR_TESTS); $(alternate) 2 $(CONFORM_TESTS)` && \
		DAT_TEST_WARM=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS="`echo $$tests`" \
		TEST_RUNNER='$(VALGRIND_COMMAND)'

# On another libfabric than that of Debian 12: all tests that call it, the longest first, with one API
# version each. Debian's programs run on this registry only: Debian's registry would call the same
# functions of the provider.
# The registry's and the programs' unit tests are not compiled.
libfabric_programs = printf '%s\n' $(check_PROGRAMS) | grep -v -e '^test/unit/src/' -e '^test/unit/util/'

libfabric-programs:
	programs=`$(libfabric_programs)` && \
		$(MAKE) $(AM_MAKEFLAGS) check TESTS= check_PROGRAMS="`echo $$programs`"

check-libfabric:
	tests=`$(alternate) 1 $(PROV_UNIT_TESTS) $(LIBFABRIC_TESTS) $(INTEROP_TESTS) $(PAIR_TESTS) \
		$(ROBUST_TESTS) $(CONFORM_TESTS)` && programs=`$(libfabric_programs)` && \
		DAT_TEST_WARM=1 INTEROP_LIBS=ours $(MAKE) $(AM_MAKEFLAGS) check \
		TESTS="`echo $$tests`" check_PROGRAMS="`echo $$programs`"

# In "make distcheck": the tests that read files of the tree, and the test of the installation, which
# needs no build of its own there. No other test is compiled; test/man.sh asks the examples for their
# names.
DIST_TESTS = $(ABI_TESTS) $(fuzz_replays) test/examples/commands.sh test/examples/standard.sh \
	test/unit/util/completion.sh test/install.sh
dist_programs = $(fuzz_replays) test/examples/examples1 test/examples/examples2

check-dist:
	INSTALL_BUILD=. $(MAKE) $(AM_MAKEFLAGS) distcheck DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0 TESTS='$(DIST_TESTS)' \
		check_PROGRAMS='$(dist_programs)'

# Whether the release has all files of the tree.
distcheck-hook:
	@cd $(srcdir) && contrib/sources | grep -v '^\.' | ( \
		missing=0 names=0; \
		while read -r name; do \
			names=$$((names + 1)); \
			test -e "$(abs_builddir)/$(distdir)/$$name" || { missing=1; \
				echo "$$name is not in the release; it belongs in EXTRA_DIST"; }; \
		done; test $$names -gt 0 && exit $$missing)

# With an older C library and compiler, and a libfabric that is too old for all IAs except rings.
CHECK_OLD_TESTS = test/pair/shm.sh $(REGISTRY_TESTS) test/unit/base_test test/unit/wq_test test/unit/cm_test \
	test/unit/obj1_test test/unit/obj2_test test/unit/prov1_test test/unit/prov2_test

# The EFA provider of that libfabric ends a process that forks without RDMAV_FORK_SAFE.
check-old: old-programs
	RDMAV_FORK_SAFE=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(CHECK_OLD_TESTS)' check_PROGRAMS=

old-programs: $(pair_programs) $(CHECK_OLD_TESTS)

# For a build for arm64 (contrib/debootstrap/build): the tests that depend on the processor, in an
# emulator, with one version of the API. obj2_test takes a minute and a half, and does not depend on
# the processor, and xport2_test would take four minutes. NATIVE_BUILD, for test/two_builds.sh, is a build
# for this machine.
EMULATOR = qemu-aarch64
NATIVE_BUILD = $(abs_top_builddir)/../native
arm64_unit_programs = test/unit/base_test test/unit/wq_test test/unit/cm_test test/unit/fab_test \
	test/unit/prov2_test
arm64_pair_programs = test/pair/passive2 test/pair/disconnect2 test/pair/data2 test/pair/rdma2 \
	test/pair/errors2 test/pair/events2 test/pair/mixed2 test/pair/cno2 test/pair/modify2 \
	test/pair/rmr2 test/pair/memory2 test/pair/freed2 test/pair/invalidate2 test/pair/ext2 \
	test/pair/srq2 test/pair/datagram2
arm64_programs = $(arm64_unit_programs) $(arm64_pair_programs) test/unit/src/handle_threads
ARM64_TESTS = test/unit/fab_test test/unit/base_test \
	test/unit/cm_test test/two_builds.sh test/big_endian.sh test/abi/abi.sh test/pair/tcp-rdm.sh test/pair/both.sh \
	$(arm64_pair_programs) test/unit/prov2_test test/unit/wq_test test/unit/src/handle_threads
EXTRA_DIST += test/two_builds.sh test/big_endian.sh test/emulated
if OTHER_PROCESSOR
SLOW_TESTS += test/two_builds.sh test/big_endian.sh
endif

arm64-programs: $(arm64_programs)

check-arm64: arm64-programs
	DAT_TEST_WARM=1 DAT_TEST_EXCEPT='$(abs_top_srcdir)/test/emulated' NATIVE_BUILD='$(NATIVE_BUILD)' \
		PAIR_PROGRAMS='disconnect data rdma errors memory srq datagram mixed' \
		$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(ARM64_TESTS)' \
		check_PROGRAMS='$(arm64_programs)' check_LTLIBRARIES= TEST_RUNNER='$(EMULATOR)'

# For a 32-bit build (contrib/debootstrap/build), with both versions of the API: the tests that depend
# on the length of a pointer. libfabric's tcp lacks RDMA there: test/pair/rxm.sh is over connectionless tcp.
i386_unit_programs = test/unit/base_test test/unit/wq_test test/unit/cm_test test/unit/src/handle_threads
I386_TESTS = test/pair/shm.sh test/pair/rxm.sh test/conform/shm.sh test/two_builds.sh \
	$(i386_unit_programs)

i386-programs: $(i386_unit_programs) $(pair_programs) $(conform_programs)

check-i386: i386-programs
	DAT_TEST_WARM=1 NATIVE_BUILD='$(NATIVE_BUILD)' \
		TWO_BUILDS_PORT=18701 TWO_BUILDS_IAS='ofi ofi-shm ofi-rxm' $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(I386_TESTS)' \
		check_PROGRAMS= check_LTLIBRARIES=

# What contrib/quickstart check runs for a newcomer, the longest first; no other test is compiled. The
# provider's unit tests, and test/pair/local, have one version of the API: they see little of the differences.
brief_programs = \
	test/conform/conform1 \
	test/conform/conform2 \
	test/unit/fab_test \
	test/unit/xport2_test \
	test/unit/obj2_test \
	test/unit/base_test \
	test/unit/wq_test \
	test/unit/cm_test \
	test/unit/prov2_test \
	test/examples/examples1 \
	test/examples/examples2 \
	test/pair/local2 \
	$(pair_programs) \
	$(util_unit_tests) \
	$(registry_unit_tests) \
	test/unit/src/handle_threads
BRIEF_TESTS = \
	test/interop/dtest.sh \
	test/interop/dapltest.sh \
	test/interop/dtestcm.sh \
	test/pair/shm.sh \
	test/conform/shm.sh \
	test/examples/commands.sh \
	contrib/check-words \
	$(brief_programs)

brief-programs: $(brief_programs)

check-brief: brief-programs
	DAT_TEST_WARM=1 INTEROP_LIBS=ours INTEROP_FABRICS= INTEROP_BRIEF='tcp shm' \
		$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(BRIEF_TESTS)' check_PROGRAMS='$(brief_programs)'

# Over verbs, in a guest with soft-RoCE: VERBS=all, or names such as "pair/data2 interop/dtest".
VERBS = brief
check-verbs: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=
	$(top_srcdir)/contrib/vm/check $(abs_top_builddir) $(VERBS)

.PHONY: brief-programs libfabric-programs check-brief check-sanitized check-alternate check-dist check-valgrind check-libfabric check-old old-programs check-arm64 \
	arm64-programs check-i386 i386-programs check-verbs

include test/pair/local.mk
include test/robust/local.mk
include test/chaos/local.mk
include test/model/local.mk
include test/conform/local.mk
include test/examples/local.mk
include test/interop/local.mk
include test/unit/local.mk
include test/unit/xport/local.mk
include test/fuzz/local.mk
