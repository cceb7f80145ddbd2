# Unit tests of the provider: a program for each layer, and one per API version for layers that use
# DAT types. They are written for Criterion but run by a stand-in (test/unit/plain). Criterion
# starts a process for each test, and every process that is linked with libfabric sleeps 0.2 s
# before main(). Criterion also does not work with ThreadSanitizer or valgrind.

prov_unit_tests = \
	test/unit/base_test \
	test/unit/fab_test \
	test/unit/wq_test \
	test/unit/obj1_test \
	test/unit/obj2_test

check_PROGRAMS += $(prov_unit_tests)
PROV_UNIT_TESTS += $(prov_unit_tests)

prov_test_cppflags = $(AM_CPPFLAGS) -DDOFI_NO_GUARDS -I$(top_srcdir)/prov/ofi -I$(top_srcdir)/test/unit \
	-I$(top_srcdir)/test/unit/plain $(LIBFABRIC_CFLAGS)
prov_test_headers = \
	test/unit/capture.h \
	test/unit/child.h \
	test/unit/thread.h \
	test/unit/forbid.h \
	test/unit/plain/criterion/criterion.h

# The runner and shared code of the tests, compiled once, or per API version if it uses DAT types.
check_LTLIBRARIES += test/unit/libplain.la test/unit/libfake1.la test/unit/libfake2.la
test_unit_libplain_la_SOURCES = $(prov_test_headers) \
	test/unit/fab/fake.c \
	test/unit/fab/fake.h \
	test/unit/nomem.c \
	test/unit/nomem.h \
	test/unit/plain/plain.c
test_unit_libplain_la_CPPFLAGS = $(prov_test_cppflags)
fake_sources = \
	test/unit/fab/fake_ep.c \
	test/unit/fab/fake_ep.h \
	test/unit/obj/fixture.c \
	test/unit/obj/fixture.h \
	test/unit/obj/service.c \
	test/unit/obj/service.h
test_unit_libfake1_la_SOURCES = $(fake_sources)
test_unit_libfake1_la_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=1
test_unit_libfake2_la_SOURCES = $(fake_sources)
test_unit_libfake2_la_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=2
prov_test_ldadd1 = test/unit/libfake1.la test/unit/libplain.la
prov_test_ldadd2 = test/unit/libfake2.la test/unit/libplain.la
nomem_ldflags = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=strdup \
	-Wl,--wrap=tsearch -Wl,--wrap=fi_dupinfo

test_unit_base_test_SOURCES = \
	test/unit/base/cond_test.c \
	test/unit/base/clock_test.c \
	test/unit/base/env_test.c \
	test/unit/base/environ_test.c \
	test/unit/base/iov_test.c \
	test/unit/base/log_test.c \
	test/unit/base/mapped_test.c \
	test/unit/base/mutex_test.c \
	test/unit/base/nap_test.c \
	test/unit/base/pool_test.c \
	test/unit/base/ring_test.c \
	test/unit/base/prompt_test.c \
	test/unit/base/range_test.c \
	test/unit/base/polling_test.c \
	test/unit/base/shm_test.c \
	test/unit/base/fds_test.c \
	test/unit/base/table_test.c
test_unit_base_test_CPPFLAGS = $(prov_test_cppflags)
test_unit_base_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=aligned_alloc \
	-Wl,--wrap=syslog -Wl,--wrap=__syslog_chk -Wl,--wrap=syscall \
	-Wl,--wrap=getauxval -Wl,--wrap=secure_getenv
test_unit_base_test_LDADD = test/unit/libplain.la libdofi_core.la

test_unit_fab_test_SOURCES = \
	test/unit/host/host_test.c \
	test/unit/host/peer_mem_test.c \
	test/unit/loop/eq_test.c \
	test/unit/loop/one.h \
	test/unit/loop/served_test.c \
	test/unit/loop/progress_test.c \
	test/unit/loop/source_test.c \
	test/unit/loop/counter_server_test.c \
	test/unit/fab/cq_one.h \
	test/unit/fab/cq_order_test.c \
	test/unit/fab/cq_policy_test.c \
	test/unit/fab/cq_read_test.c \
	test/unit/fab/cq_serve_test.c \
	test/unit/fab/cq_test.c \
	test/unit/fab/datagram_test.c \
	test/unit/fab/device_test.c \
	test/unit/fab/domain_test.c \
	test/unit/fab/draw.c \
	test/unit/fab/draw.h \
	test/unit/fab/endpoint_test.c \
	test/unit/fab/grant_book_test.c \
	test/unit/fab/grant_test.c \
	test/unit/fab/info_test.c \
	test/unit/fab/lead_test.c \
	test/unit/fab/mark_model_test.c \
	test/unit/fab/offer.h \
	test/unit/fab/offers_test.c \
	test/unit/fab/params_test.c \
	test/unit/fab/query_test.c \
	test/unit/fab/quirks_test.c \
	test/unit/fab/reach_test.c \
	test/unit/fab/shards_test.c \
	test/unit/fab/signals_test.c \
	test/unit/fab/tree.h \
	test/unit/sock/halfopen_test.c \
	test/unit/sock/closer_test.c \
	test/unit/sock/linger_test.c \
	test/unit/sock/watch_test.c \
	test/unit/rings/bell_test.c \
	test/unit/rings/bells.h \
	test/unit/rings/info_test.c \
	test/unit/rings/inbox_test.c \
	test/unit/rings/model_test.c \
	test/unit/rings/outbox_test.c \
	test/unit/rings/rings_test.c \
	test/unit/rings/set.h
test_unit_fab_test_CPPFLAGS = $(prov_test_cppflags)
test_unit_fab_test_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=fi_fabric -Wl,--wrap=fi_getinfo -Wl,--wrap=fi_version -Wl,--wrap=getrandom \
	-Wl,--wrap=ioctl -Wl,--wrap=getsockopt -Wl,--wrap=getaddrinfo \
	-Wl,--wrap=getifaddrs -Wl,--wrap=freeifaddrs \
	-Wl,--wrap=dofi_topo_locate -Wl,--wrap=process_vm_readv -Wl,--wrap=process_vm_writev \
	$(nomem_ldflags)
test_unit_fab_test_LDADD = test/unit/libplain.la libdofi_core.la

# The owner of a ring is the test's own.
test_unit_wq_test_SOURCES = \
	test/unit/wq/dto_test.c \
	test/unit/wq/queue_state_test.c \
	test/unit/wq/queue_test.c \
	test/unit/wq/ring.c \
	test/unit/wq/ring.h \
	test/unit/wq/unread_test.c
test_unit_wq_test_CPPFLAGS = $(prov_test_cppflags)
test_unit_wq_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dofi_block_get -Wl,--wrap=dofi_block_put
test_unit_wq_test_LDADD = test/unit/libplain.la libdofi_core.la

EXTRA_DIST += \
	test/data/topo/clusters.xml \
	test/data/topo/no-distances.xml \
	test/data/topo/one-node.xml \
	test/data/topo/two-sockets.xml

if HAVE_HWLOC
test_unit_fab_test_SOURCES += test/unit/fab/topo_test.c
test_unit_fab_test_LDFLAGS += -Wl,--wrap=fopen -Wl,--wrap=realpath \
	-Wl,--wrap=hwloc_topology_load -Wl,--wrap=hwloc_get_cpubind \
	-Wl,--wrap=hwloc_set_thread_cpubind
test_unit_fab_test_LDADD += $(HWLOC_LIBS)
else
test_unit_fab_test_SOURCES += test/unit/fab/topo_none_test.c
endif

obj_test_sources = \
	test/unit/check/check_test.c \
	test/unit/obj/caps_test.c \
	test/unit/obj/caps_use_test.c \
	test/unit/obj/child_test.c \
	test/unit/obj/cno_test.c \
	test/unit/obj/counters_test.c \
	test/unit/obj/cr_test.c \
	test/unit/obj/csp_test.c \
	test/unit/obj/dat_test.c \
	test/unit/obj/datagram_test.c \
	test/unit/obj/dequeue_test.c \
	test/unit/obj/ep_attr_test.c \
	test/unit/obj/ep_bind_test.c \
	test/unit/obj/ep_cm_test.c \
	test/unit/obj/ep_connect_test.c \
	test/unit/obj/ep_create_test.c \
	test/unit/obj/ep_done_test.c \
	test/unit/obj/ep_dto_test.c \
	test/unit/obj/ep_one.h \
	test/unit/obj/ep_post_test.c \
	test/unit/obj/ep_queue_test.c \
	test/unit/obj/ep_revoke_test.c \
	test/unit/obj/ep_srq_test.c \
	test/unit/obj/ep_test.c \
	test/unit/obj/evd_one.h \
	test/unit/obj/evd_queue_test.c \
	test/unit/obj/evd_test.c \
	test/unit/obj/evd_wait_test.c \
	test/unit/obj/exchange_test.c \
	test/unit/obj/ia_test.c \
	test/unit/obj/lmr_test.c \
	test/unit/obj/obj_test.c \
	test/unit/obj/ops.c \
	test/unit/obj/ops.h \
	test/unit/obj/pz_test.c \
	test/unit/obj/reason.h \
	test/unit/obj/rmr_one.h \
	test/unit/obj/rmr_test.c \
	test/unit/obj/segments_test.c \
	test/unit/obj/sp_test.c \
	test/unit/obj/srq_test.c \
	test/unit/registry.c \
	test/unit/registry.h \
	test/unit/xport/msg/preamble_test.c \
	test/unit/xport/msg/srq_test.c
obj_test_ldflags = $(AM_LDFLAGS) -Wl,--wrap=fi_fabric -Wl,--wrap=fi_getinfo -Wl,--wrap=fi_version \
	-Wl,--wrap=dofi_topo_locate -Wl,--wrap=dofi_block_get -Wl,--wrap=dofi_block_put

test_unit_obj1_test_SOURCES = $(obj_test_sources)
test_unit_obj1_test_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=1
test_unit_obj1_test_LDFLAGS = $(obj_test_ldflags)
test_unit_obj1_test_LDADD = $(prov_test_ldadd1) libdofi1.la

test_unit_obj2_test_SOURCES = $(obj_test_sources)
test_unit_obj2_test_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=2
test_unit_obj2_test_LDFLAGS = $(obj_test_ldflags)
test_unit_obj2_test_LDADD = $(prov_test_ldadd2) libdofi2.la
