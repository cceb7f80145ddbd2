# Fabrics that libfabric does not have here: preload libraries that change one that it has.

check_LTLIBRARIES += test/chaos/shapes.la
test_chaos_shapes_la_SOURCES = test/chaos/shapes.c test/chaos/words.h
test_chaos_shapes_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
test_chaos_shapes_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere

# Faults in the calls of any fabric.
check_LTLIBRARIES += test/chaos/faults.la
test_chaos_faults_la_SOURCES = test/chaos/faults.c test/chaos/words.h
test_chaos_faults_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
test_chaos_faults_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere

# Many connections with random operations.
ROBUST_TESTS += test/chaos/random1 test/chaos/random2
check_PROGRAMS += test/chaos/random1 test/chaos/random2
test_chaos_random1_SOURCES = test/chaos/random.c
test_chaos_random1_CPPFLAGS = $(pair_cppflags1)
test_chaos_random1_LDADD = $(pair_ldadd1)
test_chaos_random2_SOURCES = test/chaos/random.c
test_chaos_random2_CPPFLAGS = $(pair_cppflags2)
test_chaos_random2_LDADD = $(pair_ldadd2)

shape_tests = test/chaos/efa.sh test/chaos/cxi.sh test/chaos/psm3.sh
SLOW_TESTS += $(shape_tests) test/chaos/faults.sh
LIBFABRIC_TESTS += test/chaos/faults.sh
EXTRA_DIST += $(shape_tests) test/chaos/shapes.sh test/chaos/faults.sh
