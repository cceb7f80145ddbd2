# The provider: one source, built for both API versions.

# base, host, loop, fab, sock, rings and wq see no DAT type and are compiled once.
dofi_core_sources = \
	prov/ofi/base/cond.c \
	prov/ofi/base/env.c \
	prov/ofi/base/environ.c \
	prov/ofi/base/fds.c \
	prov/ofi/base/iov.c \
	prov/ofi/base/log.c \
	prov/ofi/base/mapped.c \
	prov/ofi/base/mutex.c \
	prov/ofi/base/pool.c \
	prov/ofi/base/polling.c \
	prov/ofi/base/shm.c \
	prov/ofi/base/table.c \
	prov/ofi/host/host.c \
	prov/ofi/loop/eq.c \
	prov/ofi/loop/progress.c \
	prov/ofi/loop/source.c \
	prov/ofi/loop/counter_server.c \
	prov/ofi/fab/cq.c \
	prov/ofi/fab/cq_policy.c \
	prov/ofi/fab/cq_read.c \
	prov/ofi/fab/device.c \
	prov/ofi/fab/domain.c \
	prov/ofi/fab/endpoint.c \
	prov/ofi/fab/grant.c \
	prov/ofi/fab/grant_book.c \
	prov/ofi/fab/info.c \
	prov/ofi/fab/offers.c \
	prov/ofi/fab/params.c \
	prov/ofi/fab/query.c \
	prov/ofi/fab/quirks.c \
	prov/ofi/fab/reach.c \
	prov/ofi/fab/reason.c \
	prov/ofi/fab/shards.c \
	prov/ofi/sock/linger.c \
	prov/ofi/sock/watch.c \
	prov/ofi/rings/bell.c \
	prov/ofi/rings/inbox.c \
	prov/ofi/rings/info.c \
	prov/ofi/rings/outbox.c \
	prov/ofi/rings/rings.c \
	prov/ofi/wq/queue.c

if HAVE_HWLOC
dofi_core_sources += prov/ofi/fab/topo.c
else
dofi_core_sources += prov/ofi/fab/topo_none.c
endif

# These are compiled once per API version.
dofi_api_sources = \
	prov/ofi/obj/caps.c \
	prov/ofi/obj/caps_use.c \
	prov/ofi/obj/child.c \
	prov/ofi/obj/evd/cno.c \
	prov/ofi/obj/counters.c \
	prov/ofi/obj/sp/cr.c \
	prov/ofi/obj/dat.c \
	prov/ofi/obj/ep/datagram.c \
	prov/ofi/obj/ep/ep.c \
	prov/ofi/obj/ep/ep_attr.c \
	prov/ofi/obj/ep/ep_bind.c \
	prov/ofi/obj/ep/ep_cm.c \
	prov/ofi/obj/ep/ep_connect.c \
	prov/ofi/obj/ep/ep_create.c \
	prov/ofi/obj/ep/ep_done.c \
	prov/ofi/obj/ep/ep_dto.c \
	prov/ofi/obj/ep/ep_post.c \
	prov/ofi/obj/ep/ep_queue.c \
	prov/ofi/obj/ep/ep_revoke.c \
	prov/ofi/obj/evd/evd.c \
	prov/ofi/obj/evd/evd_queue.c \
	prov/ofi/obj/evd/evd_wait.c \
	prov/ofi/obj/ep/fast.c \
	prov/ofi/obj/ia.c \
	prov/ofi/obj/mem/lmr.c \
	prov/ofi/obj/obj.c \
	prov/ofi/obj/mem/pz.c \
	prov/ofi/obj/mem/rmr.c \
	prov/ofi/obj/mem/segments.c \
	prov/ofi/obj/sp/sp.c \
	prov/ofi/obj/mem/srq.c \
	prov/ofi/xport/local_or_net.c \
	prov/ofi/xport/msg/msg.c \
	prov/ofi/xport/msg/connect.c \
	prov/ofi/xport/msg/endpoint.c \
	prov/ofi/xport/msg/event.c \
	prov/ofi/xport/msg/listen.c \
	prov/ofi/xport/msg/mail.c \
	prov/ofi/xport/msg/op.c \
	prov/ofi/xport/msg/native.c \
	prov/ofi/xport/msg/open.c \
	prov/ofi/xport/msg/srq.c \
	prov/ofi/xport/ports.c \
	prov/ofi/xport/rdm/conn.c \
	prov/ofi/xport/rdm/frame.c \
	prov/ofi/xport/rdm/transmit.c \
	prov/ofi/xport/rdm/op.c \
	prov/ofi/xport/rdm/peer.c \
	prov/ofi/xport/rdm/recv.c \
	prov/ofi/xport/rdm/fast.c \
	prov/ofi/xport/rdm/request.c \
	prov/ofi/xport/rdm/rma.c \
	prov/ofi/xport/rdm/rndv.c \
	prov/ofi/xport/rdm/send.c \
	prov/ofi/xport/rdm/target.c \
	prov/ofi/xport/rdm/xport.c \
	prov/ofi/xport/rdm/pz.c \
	prov/ofi/xport/cm/address.c \
	prov/ofi/xport/cm/conn.c \
	prov/ofi/xport/cm/fds.c \
	prov/ofi/xport/cm/listen.c \
	prov/ofi/xport/cm/wire.c \
	prov/ofi/xport/wire.c \
	prov/ofi/ext.c \
	prov/ofi/prov.c

# Datagrams, which 1.2 does not have.
dofi_datagram_sources = \
	prov/ofi/xport/ud/call.c \
	prov/ofi/xport/ud/frame.c \
	prov/ofi/xport/ud/peer.c \
	prov/ofi/xport/ud/pz.c \
	prov/ofi/xport/ud/recv.c \
	prov/ofi/xport/ud/request.c \
	prov/ofi/xport/ud/send.c \
	prov/ofi/xport/ud/service.c

# Verifies all objects, for tests.
if CHECKS
dofi_api_sources += \
	prov/ofi/check/check.c \
	prov/ofi/check/ep.c \
	prov/ofi/check/events.c \
	prov/ofi/check/objects.c \
	prov/ofi/check/rdm.c
endif

noinst_HEADERS += \
	prov/ofi/check/check.h \
	prov/ofi/base/cond.h \
	prov/ofi/base/clock.h \
	prov/ofi/base/layout.h \
	prov/ofi/base/env.h \
	prov/ofi/base/environ.h \
	prov/ofi/base/iov.h \
	prov/ofi/base/log.h \
	prov/ofi/base/mapped.h \
	prov/ofi/base/mutex.h \
	prov/ofi/base/pool.h \
	prov/ofi/base/range.h \
	prov/ofi/base/ring.h \
	prov/ofi/base/polling.h \
	prov/ofi/base/shm.h \
	prov/ofi/base/fds.h \
	prov/ofi/base/table.h \
	prov/ofi/host/host.h \
	prov/ofi/loop/progress.h \
	prov/ofi/loop/counter_server.h \
	prov/ofi/fab/cq.h \
	prov/ofi/fab/cq_policy.h \
	prov/ofi/fab/domain.h \
	prov/ofi/fab/endpoint.h \
	prov/ofi/fab/grant.h \
	prov/ofi/fab/grant_book.h \
	prov/ofi/fab/info.h \
	prov/ofi/fab/offers.h \
	prov/ofi/fab/params.h \
	prov/ofi/fab/quirks.h \
	prov/ofi/fab/reach.h \
	prov/ofi/fab/shards.h \
	prov/ofi/sock/linger.h \
	prov/ofi/sock/watch.h \
	prov/ofi/rings/bell.h \
	prov/ofi/rings/inbox.h \
	prov/ofi/rings/link.h \
	prov/ofi/rings/outbox.h \
	prov/ofi/rings/rings.h \
	prov/ofi/obj/caps.h \
	prov/ofi/obj/evd/cno.h \
	prov/ofi/obj/counters.h \
	prov/ofi/obj/sp/cr.h \
	prov/ofi/obj/dat.h \
	prov/ofi/obj/ep/datagram.h \
	prov/ofi/obj/ep/ep.h \
	prov/ofi/obj/ep/ep_attr.h \
	prov/ofi/obj/ep/ep_cm.h \
	prov/ofi/obj/ep/ep_dto.h \
	prov/ofi/obj/ep/ep_post.h \
	prov/ofi/obj/evd/evd.h \
	prov/ofi/obj/exchange.h \
	prov/ofi/obj/ep/fast.h \
	prov/ofi/obj/ia.h \
	prov/ofi/obj/mem/lmr.h \
	prov/ofi/obj/mailbox.h \
	prov/ofi/obj/obj.h \
	prov/ofi/obj/mem/pz.h \
	prov/ofi/obj/mem/rmr.h \
	prov/ofi/obj/mem/segments.h \
	prov/ofi/obj/sp/sp.h \
	prov/ofi/obj/cq_data.h \
	prov/ofi/obj/mem/srq.h \
	prov/ofi/wq/dto.h \
	prov/ofi/wq/queue.h \
	prov/ofi/obj/xport.h \
	prov/ofi/ext.h \
	prov/ofi/xport/local_or_net.h \
	prov/ofi/xport/msg/msg.h \
	prov/ofi/xport/ports.h \
	prov/ofi/xport/rdm/conn.h \
	prov/ofi/xport/rdm/frame.h \
	prov/ofi/xport/rdm/transmit.h \
	prov/ofi/xport/rdm/op.h \
	prov/ofi/xport/rdm/peer.h \
	prov/ofi/xport/rdm/rdm.h \
	prov/ofi/xport/rdm/rma.h \
	prov/ofi/xport/rdm/rndv.h \
	prov/ofi/xport/rdm/send.h \
	prov/ofi/xport/cm/address.h \
	prov/ofi/xport/cm/conn.h \
	prov/ofi/xport/cm/listen.h \
	prov/ofi/xport/cm/wire.h \
	prov/ofi/xport/ud/frame.h \
	prov/ofi/xport/ud/ud.h \
	prov/ofi/obj/ep/datagram.h \
	prov/ofi/xport/wire.h

dofi_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/prov/ofi $(LIBFABRIC_CFLAGS) $(HWLOC_CFLAGS) \
	$(DEBUG_CPPFLAGS)

noinst_LTLIBRARIES += libdofi_core.la libdofi1.la libdofi2.la

libdofi_core_la_SOURCES = $(dofi_core_sources)
libdofi_core_la_CPPFLAGS = $(dofi_cppflags)
libdofi_core_la_LIBADD = $(LIBFABRIC_LIBS) $(HWLOC_LIBS)

# All of a provider, for it and for unit tests of its inside.
libdofi1_la_SOURCES = $(dofi_api_sources)
libdofi1_la_CPPFLAGS = $(dofi_cppflags) -DDAT_API=1
libdofi1_la_LIBADD = libdofi_core.la

libdofi2_la_SOURCES = $(dofi_api_sources) $(dofi_datagram_sources)
libdofi2_la_CPPFLAGS = $(dofi_cppflags) -DDAT_API=2
libdofi2_la_LIBADD = libdofi_core.la

# Two libraries of one name, told apart by their version and so installed side by side.
# nodelete: libfabric's threads and thread-local data outlive the registry's dlclose().
lib_LTLIBRARIES += prov/ofi/v1/libdaplofi.la prov/ofi/v2/libdaplofi.la
dofi_ldflags = $(AM_LDFLAGS) $(LIB_LDFLAGS) -Wl,-z,nodelete \
	-Wl,--version-script=$(top_srcdir)/prov/ofi/libdaplofi.map

prov_ofi_v1_libdaplofi_la_SOURCES =
prov_ofi_v1_libdaplofi_la_LDFLAGS = $(dofi_ldflags) -version-info 1:0:0
prov_ofi_v1_libdaplofi_la_LIBADD = libdofi1.la libdat.la
EXTRA_prov_ofi_v1_libdaplofi_la_DEPENDENCIES = prov/ofi/libdaplofi.map

prov_ofi_v2_libdaplofi_la_SOURCES =
prov_ofi_v2_libdaplofi_la_LDFLAGS = $(dofi_ldflags) -version-info 2:0:0
prov_ofi_v2_libdaplofi_la_LIBADD = libdofi2.la libdat2.la
EXTRA_prov_ofi_v2_libdaplofi_la_DEPENDENCIES = prov/ofi/libdaplofi.map

EXTRA_DIST += prov/ofi/libdaplofi.map

# Nobody links with a provider, and the two would share the files for that.
install-providers-hook:
	cd "$(DESTDIR)$(libdir)" && rm -f libdaplofi.la libdaplofi.so libdaplofi.a

uninstall-providers-hook:
	for name in 1 1.0.0 2 2.0.0; do \
		rm -f "$(DESTDIR)$(libdir)/libdaplofi.so.$$name" || exit 1; \
	done
