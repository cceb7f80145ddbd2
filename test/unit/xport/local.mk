# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Unit tests of the transports, of the provider's entry points and of the test runner. See
# test/unit/local.mk.

xport_unit_tests = \
	test/unit/cm_test \
	test/unit/xport1_test \
	test/unit/xport2_test \
	test/unit/prov1_test \
	test/unit/prov2_test

check_PROGRAMS += $(xport_unit_tests)
PROV_UNIT_TESTS += $(xport_unit_tests)

xport_test_sources = \
	test/unit/registry.c \
	test/unit/registry.h \
	test/unit/xport/local_or_net_test.c \
	test/unit/xport/coupled.c \
	test/unit/xport/coupled.h \
	test/unit/xport/fabric.c \
	test/unit/xport/fabric.h \
	test/unit/xport/rdm/rings_fault.h \
	test/unit/xport/msg/bye_test.c \
	test/unit/xport/msg/connect_test.c \
	test/unit/xport/msg/endpoint_test.c \
	test/unit/xport/msg/event_test.c \
	test/unit/xport/msg/listen_test.c \
	test/unit/xport/msg/mail_test.c \
	test/unit/xport/msg/msg_test.c \
	test/unit/xport/msg/native_test.c \
	test/unit/xport/msg/one.h \
	test/unit/xport/msg/op_test.c \
	test/unit/xport/msg/open_test.c \
	test/unit/xport/peer.c \
	test/unit/xport/peer.h \
	test/unit/xport/ports_test.c \
	test/unit/xport/rdm/conn_test.c \
	test/unit/xport/rdm/fast_test.c \
	test/unit/xport/rdm/eager_test.c \
	test/unit/xport/rdm/transmit_test.c \
	test/unit/xport/rdm/onesided_test.c \
	test/unit/xport/rdm/op_test.c \
	test/unit/xport/rdm/parts.h \
	test/unit/xport/rdm/peer_test.c \
	test/unit/xport/rdm/pz_test.c \
	test/unit/xport/rdm/recv_test.c \
	test/unit/xport/rdm/request_test.c \
	test/unit/xport/rdm/rings_peer.h \
	test/unit/xport/rdm/rings_test.c \
	test/unit/xport/rdm/rma_test.c \
	test/unit/xport/rdm/rndv_test.c \
	test/unit/xport/rdm/send_test.c \
	test/unit/xport/rdm/target_test.c \
	test/unit/xport/rdm/xport_test.c \
	test/unit/xport/cm/talk.c \
	test/unit/xport/cm/talk.h \
	test/unit/xport/wire_test.c
xport_test_ldflags = $(AM_LDFLAGS) -Wl,--wrap=fi_fabric -Wl,--wrap=fi_getinfo -Wl,--wrap=fi_version \
	$(nomem_ldflags)

test_unit_xport1_test_SOURCES = $(xport_test_sources)
test_unit_xport1_test_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=1
test_unit_xport1_test_LDFLAGS = $(xport_test_ldflags) -Wl,--wrap=memfd_create -Wl,--wrap=process_vm_writev -Wl,--wrap=socket -Wl,--wrap=getsockopt
test_unit_xport1_test_LDADD = $(prov_test_ldadd1) libdofi1.la

# Programs of 1.2 have no datagrams.
test_unit_xport2_test_SOURCES = $(xport_test_sources) \
	test/unit/xport/ud/call_test.c \
	test/unit/xport/ud/frame_test.c \
	test/unit/xport/ud/inbox_test.c \
	test/unit/xport/ud/parts.c \
	test/unit/xport/ud/parts.h \
	test/unit/xport/ud/peer_test.c \
	test/unit/xport/ud/pz_test.c \
	test/unit/xport/ud/recv_test.c \
	test/unit/xport/ud/request_test.c \
	test/unit/xport/ud/send_test.c \
	test/unit/xport/ud/service_test.c
test_unit_xport2_test_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=2
test_unit_xport2_test_LDFLAGS = $(xport_test_ldflags) -Wl,--wrap=memfd_create -Wl,--wrap=process_vm_writev -Wl,--wrap=socket -Wl,--wrap=getsockopt
test_unit_xport2_test_LDADD = $(prov_test_ldadd2) libdofi2.la

# CM sockets and frames use no DAT type, so one program serves both API versions.
test_unit_cm_test_SOURCES = \
	test/unit/xport/rdm/frame_test.c \
	test/unit/xport/cm/cm.c \
	test/unit/xport/cm/cm.h \
	test/unit/xport/cm/listen_test.c \
	test/unit/xport/cm/address_test.c \
	test/unit/xport/cm/conn_test.c \
	test/unit/xport/cm/fds_test.c \
	test/unit/xport/cm/local_test.c \
	test/unit/xport/cm/wire_test.c
test_unit_cm_test_CPPFLAGS = $(prov_test_cppflags)
test_unit_cm_test_LDFLAGS = $(xport_test_ldflags) \
	-Wl,--wrap=accept4 -Wl,--wrap=connect -Wl,--wrap=epoll_ctl -Wl,--wrap=send
test_unit_cm_test_LDADD = $(prov_test_ldadd2) libdofi2.la

# The program finds NEWS, which is distributed, through top_srcdir.
prov_test_sources = \
	test/unit/ext_test.c \
	test/unit/prov_test.c \
	test/unit/registry.c \
	test/unit/registry.h \
	test/unit/table_test.c

test_unit_prov1_test_SOURCES = $(prov_test_sources)
test_unit_prov1_test_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=1
test_unit_prov1_test_LDFLAGS = $(xport_test_ldflags)
test_unit_prov1_test_LDADD = $(prov_test_ldadd1) libdofi1.la

test_unit_prov2_test_SOURCES = $(prov_test_sources)
test_unit_prov2_test_CPPFLAGS = $(prov_test_cppflags) -DDAT_API=2
test_unit_prov2_test_LDFLAGS = $(xport_test_ldflags)
test_unit_prov2_test_LDADD = $(prov_test_ldadd2) libdofi2.la

# The runner itself: sanity has tests that must fail, and sanity.sh checks that they do.
PROV_UNIT_TESTS += test/unit/sanity.sh
check_PROGRAMS += test/unit/sanity
test_unit_sanity_SOURCES = test/unit/sanity_test.c
test_unit_sanity_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test/unit/plain
test_unit_sanity_LDADD = test/unit/libplain.la

EXTRA_DIST += test/unit/sanity.sh
