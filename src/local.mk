# The registry: libdat.so.1 (uDAPL 1.2) and libdat2.so.2 (DAT 2.0), from one source.

lib_LTLIBRARIES += libdat.la libdat2.la

registry_sources = \
	src/conf.c \
	src/conf.h \
	src/dispatch.c \
	src/dispatch.h \
	src/err.h \
	src/event.c \
	src/handle.c \
	src/handle.h \
	src/ia.c \
	src/load.c \
	src/load.h \
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
