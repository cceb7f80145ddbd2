# The registry: libdat.so.1 (uDAPL 1.2) and libdat2.so.2 (DAT 2.0), from one source.

lib_LTLIBRARIES += libdat.la libdat2.la

registry_sources = \
	src/conf.c \
	src/conf.h \
	src/conf_dirs.h \
	src/dispatch.c \
	src/dispatch.h \
	src/entry.c \
	src/entry.h \
	src/err.h \
	src/event.c \
	src/handle.c \
	src/handle.h \
	src/ia.c \
	src/load.c \
	src/lock.h \
	src/log.c \
	src/log.h \
	src/object.c \
	src/registry.c \
	src/registry.h \
	src/strerror.c

registry_cppflags = $(AM_CPPFLAGS) $(DEBUG_CPPFLAGS) \
	-DDAT_CONFDIR='"$(sysconfdir)"' -DDAT_LIBDIR='"$(libdir)"'

libdat_la_SOURCES = $(registry_sources)
libdat_la_CPPFLAGS = -DDAT_API=1 $(registry_cppflags)
libdat_la_LDFLAGS = $(AM_LDFLAGS) $(LIB_LDFLAGS) -version-info 1:0:0 \
	-Wl,--version-script=$(top_srcdir)/src/libdat.map
EXTRA_libdat_la_DEPENDENCIES = src/libdat.map

libdat2_la_SOURCES = $(registry_sources)
libdat2_la_CPPFLAGS = -DDAT_API=2 $(registry_cppflags)
libdat2_la_LDFLAGS = $(AM_LDFLAGS) $(LIB_LDFLAGS) -version-info 2:0:0 \
	-Wl,--version-script=$(top_srcdir)/src/libdat2.map
EXTRA_libdat2_la_DEPENDENCIES = src/libdat2.map

EXTRA_DIST += \
	src/libdat.map \
	src/libdat2.map

if HAVE_CRITERION
registry_unit_tests = \
	test/unit/src/conf_test \
	test/unit/src/dispatch1_test \
	test/unit/src/dispatch2_test \
	test/unit/src/entry1_test \
	test/unit/src/entry2_test \
	test/unit/src/event1_test \
	test/unit/src/event2_test \
	test/unit/src/handle_test \
	test/unit/src/ia1_test \
	test/unit/src/ia2_test \
	test/unit/src/load1_test \
	test/unit/src/load2_test \
	test/unit/src/log1_test \
	test/unit/src/log2_test \
	test/unit/src/object1_test \
	test/unit/src/object2_test \
	test/unit/src/registry1_test \
	test/unit/src/registry2_test \
	test/unit/src/scope_test \
	test/unit/src/strerror1_test \
	test/unit/src/strerror2_test

check_PROGRAMS += $(registry_unit_tests)
check_LTLIBRARIES += \
	test/unit/src/lone.la \
	test/unit/src/stub1.la \
	test/unit/src/stub2.la \
	test/unit/src/unlinked.la \
	test/unit/src/unresolved.la
REGISTRY_TESTS += $(registry_unit_tests)
endif

check_PROGRAMS += test/unit/src/handle_threads
REGISTRY_TESTS += test/unit/src/handle_threads

registry_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/src $(CRITERION_CFLAGS)

# Tests of a single registry file.
test_unit_src_conf_test_SOURCES = test/unit/src/conf_test.c src/conf.c
test_unit_src_conf_test_CPPFLAGS = $(registry_test_cppflags)
test_unit_src_conf_test_LDADD = $(CRITERION_LIBS)
test_unit_src_handle_test_SOURCES = test/unit/src/handle_test.c src/handle.c
test_unit_src_handle_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_handle_test_LDADD = $(CRITERION_LIBS)
test_unit_src_handle_threads_SOURCES = test/unit/src/handle_threads.c src/handle.c
test_unit_src_handle_threads_CPPFLAGS = -DDAT_API=2 $(AM_CPPFLAGS) -I$(top_srcdir)/src

# Tests of one file each, for both API versions; the test replaces the functions that the file
# calls.
registry_event_files = \
	test/unit/src/handles.h test/unit/src/event_test.c src/event.c src/handle.c
test_unit_src_event1_test_SOURCES = $(registry_event_files)
test_unit_src_event1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_event1_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dreg_handle_add
test_unit_src_event1_test_LDADD = $(CRITERION_LIBS)
test_unit_src_event2_test_SOURCES = $(registry_event_files)
test_unit_src_event2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_event2_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dreg_handle_add
test_unit_src_event2_test_LDADD = $(CRITERION_LIBS)
registry_ia_files = \
	test/unit/src/handles.h test/unit/src/ia_test.c src/ia.c src/handle.c
test_unit_src_ia1_test_SOURCES = $(registry_ia_files)
test_unit_src_ia1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_ia1_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dreg_handle_add
test_unit_src_ia1_test_LDADD = $(CRITERION_LIBS)
test_unit_src_ia2_test_SOURCES = $(registry_ia_files)
test_unit_src_ia2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_ia2_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dreg_handle_add
test_unit_src_ia2_test_LDADD = $(CRITERION_LIBS)
registry_object_files = \
	test/unit/src/handles.h test/unit/src/object_test.c src/object.c src/handle.c
test_unit_src_object1_test_SOURCES = $(registry_object_files)
test_unit_src_object1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_object1_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dreg_handle_add
test_unit_src_object1_test_LDADD = $(CRITERION_LIBS)
test_unit_src_object2_test_SOURCES = $(registry_object_files)
test_unit_src_object2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_object2_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dreg_handle_add
test_unit_src_object2_test_LDADD = $(CRITERION_LIBS)
registry_entry_files = test/unit/src/entry_test.c src/conf.c src/entry.c
registry_entry_cppflags = $(registry_test_cppflags) -DDAT_CONFDIR='"."'
registry_entry_ldflags = -Wl,--wrap=calloc -Wl,--wrap=strdup
test_unit_src_entry1_test_SOURCES = $(registry_entry_files)
test_unit_src_entry1_test_CPPFLAGS = -DDAT_API=1 $(registry_entry_cppflags)
test_unit_src_entry1_test_LDFLAGS = $(AM_LDFLAGS) $(registry_entry_ldflags)
test_unit_src_entry1_test_LDADD = $(CRITERION_LIBS)
test_unit_src_entry2_test_SOURCES = $(registry_entry_files)
test_unit_src_entry2_test_CPPFLAGS = -DDAT_API=2 $(registry_entry_cppflags)
test_unit_src_entry2_test_LDFLAGS = $(AM_LDFLAGS) $(registry_entry_ldflags)
test_unit_src_entry2_test_LDADD = $(CRITERION_LIBS)
registry_log_files = test/unit/capture.h test/unit/src/log_test.c src/log.c
test_unit_src_log1_test_SOURCES = $(registry_log_files)
test_unit_src_log1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_log1_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syslog -Wl,--wrap=__syslog_chk
test_unit_src_log1_test_LDADD = $(CRITERION_LIBS)
test_unit_src_log2_test_SOURCES = $(registry_log_files)
test_unit_src_log2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_log2_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syslog -Wl,--wrap=__syslog_chk
test_unit_src_log2_test_LDADD = $(CRITERION_LIBS)
registry_load_files = test/unit/src/load_test.c src/load.c
registry_load_cppflags = $(registry_test_cppflags) \
	-DDAT_LIBDIR='"$(abs_top_builddir)/test/unit/src/.libs"'
registry_odd_libraries = test/unit/src/lone.la test/unit/src/unresolved.la
test_unit_src_load1_test_SOURCES = $(registry_load_files)
test_unit_src_load1_test_CPPFLAGS = -DDAT_API=1 $(registry_load_cppflags)
test_unit_src_load1_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getauxval
test_unit_src_load1_test_LDADD = $(CRITERION_LIBS)
EXTRA_test_unit_src_load1_test_DEPENDENCIES = $(registry_odd_libraries)
test_unit_src_load2_test_SOURCES = $(registry_load_files)
test_unit_src_load2_test_CPPFLAGS = -DDAT_API=2 $(registry_load_cppflags)
test_unit_src_load2_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getauxval
test_unit_src_load2_test_LDADD = $(CRITERION_LIBS)
EXTRA_test_unit_src_load2_test_DEPENDENCIES = $(registry_odd_libraries)

# Tests of the whole libraries.
registry_dispatch_files = test/unit/src/calls.h test/unit/src/dispatch_test.c
test_unit_src_dispatch1_test_SOURCES = $(registry_dispatch_files)
test_unit_src_dispatch1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_dispatch1_test_LDADD = libdat.la $(CRITERION_LIBS)
test_unit_src_dispatch2_test_SOURCES = $(registry_dispatch_files)
test_unit_src_dispatch2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_dispatch2_test_LDADD = libdat2.la $(CRITERION_LIBS)
test_unit_src_strerror1_test_SOURCES = test/unit/src/strerror_test.c test/unit/recorded.h
test_unit_src_strerror1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_strerror1_test_LDADD = libdat.la $(CRITERION_LIBS)
test_unit_src_strerror2_test_SOURCES = test/unit/src/strerror_test.c test/unit/recorded.h
test_unit_src_strerror2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_strerror2_test_LDADD = libdat2.la $(CRITERION_LIBS)

# Tests that load a provider, which reports its calls to the test program.
test_unit_src_registry1_test_SOURCES = test/unit/src/registry_test.c
test_unit_src_registry1_test_CPPFLAGS = -DDAT_API=1 $(registry_test_cppflags)
test_unit_src_registry1_test_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
test_unit_src_registry1_test_LDADD = libdat.la $(CRITERION_LIBS)
EXTRA_test_unit_src_registry1_test_DEPENDENCIES = test/unit/src/stub1.la
test_unit_src_registry2_test_SOURCES = test/unit/src/registry_test.c
test_unit_src_registry2_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_registry2_test_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
test_unit_src_registry2_test_LDADD = libdat2.la $(CRITERION_LIBS)
EXTRA_test_unit_src_registry2_test_DEPENDENCIES = test/unit/src/stub2.la

# scope_test loads the registry too.
test_unit_src_scope_test_SOURCES = test/unit/src/scope_test.c
test_unit_src_scope_test_CPPFLAGS = -DDAT_API=2 $(registry_test_cppflags)
test_unit_src_scope_test_LDADD = $(CRITERION_LIBS)
EXTRA_test_unit_src_scope_test_DEPENDENCIES = libdat2.la test/unit/src/unlinked.la

# Libtool builds a shared library only for a directory to install it in.
registry_stub_ldflags = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
test_unit_src_stub1_la_SOURCES = test/unit/src/stub_provider.c
test_unit_src_stub1_la_CPPFLAGS = -DDAT_API=1 $(AM_CPPFLAGS)
test_unit_src_stub1_la_LDFLAGS = $(registry_stub_ldflags)
test_unit_src_stub1_la_LIBADD = libdat.la
test_unit_src_stub2_la_SOURCES = test/unit/src/stub_provider.c
test_unit_src_stub2_la_CPPFLAGS = -DDAT_API=2 $(AM_CPPFLAGS)
test_unit_src_stub2_la_LDFLAGS = $(registry_stub_ldflags)
test_unit_src_stub2_la_LIBADD = libdat2.la
test_unit_src_unlinked_la_SOURCES = test/unit/src/stub_provider.c
test_unit_src_unlinked_la_CPPFLAGS = -DDAT_API=2 $(AM_CPPFLAGS)
test_unit_src_unlinked_la_LDFLAGS = $(registry_stub_ldflags)
test_unit_src_lone_la_SOURCES = test/unit/src/odd_library.c
test_unit_src_lone_la_LDFLAGS = $(registry_stub_ldflags)
test_unit_src_unresolved_la_SOURCES = test/unit/src/odd_library.c
test_unit_src_unresolved_la_CPPFLAGS = -DUNRESOLVED $(AM_CPPFLAGS)
test_unit_src_unresolved_la_LDFLAGS = $(registry_stub_ldflags)

EXTRA_DIST += \
	test/data/dat.conf/blanks.conf \
	test/data/dat.conf/blanks.expected \
	test/data/dat.conf/crlf.conf \
	test/data/dat.conf/crlf.expected \
	test/data/dat.conf/empty.conf \
	test/data/dat.conf/empty.expected \
	test/data/dat.conf/fields.conf \
	test/data/dat.conf/fields.expected \
	test/data/dat.conf/keywords.conf \
	test/data/dat.conf/keywords.expected \
	test/data/dat.conf/names.conf \
	test/data/dat.conf/names.expected \
	test/data/dat.conf/no-newline.conf \
	test/data/dat.conf/no-newline.expected \
	test/data/dat.conf/plain.conf \
	test/data/dat.conf/plain.expected \
	test/data/dat.conf/quotes.conf \
	test/data/dat.conf/quotes.expected \
	test/data/dat.conf/versions.conf \
	test/data/dat.conf/versions.expected
