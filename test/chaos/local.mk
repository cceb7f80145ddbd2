# Fabrics that libfabric does not have here: preload libraries that change one that it has.

check_LTLIBRARIES += test/chaos/efa.la
test_chaos_efa_la_SOURCES = test/chaos/efa.c
test_chaos_efa_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
test_chaos_efa_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere

SLOW_TESTS += test/chaos/efa.sh
EXTRA_DIST += test/chaos/efa.sh
