# How tests are run; and the tests that belong to no single area.

EXTRA_DIST += test/run contrib/check-layers

# What every test finds in its environment. TEST_RUNNER is a command, such as valgrind, under
# which programs run: "make check" puts it before test programs itself (test/run), and scripts
# put it before the programs that they start.
TEST_RUNNER =
TEST_TIMEOUT = 900
AM_TESTS_ENVIRONMENT = \
	srcdir='$(srcdir)'; export srcdir; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	TEST_RUNNER='$(TEST_RUNNER)'; export TEST_RUNNER; \
	TEST_TIMEOUT='$(TEST_TIMEOUT)'; export TEST_TIMEOUT; \
	IPATH_NO_BACKTRACE=1; export IPATH_NO_BACKTRACE;

LOG_COMPILER = $(SHELL) $(top_srcdir)/test/run
