# Debian's own programs on our libraries.

# No two of a list have a port in common. TESTS has other tests between the lists, so that no job of make waits
# for another's port.
interop_first = test/interop/dapltest.sh test/interop/dtest.sh
interop_next = test/interop/daplfft.sh test/interop/dtestsrq.sh
interop_last = test/interop/dtestx.sh
interop_end = test/interop/dtestcm.sh
INTEROP_TESTS += $(interop_first) $(interop_next) $(interop_last) $(interop_end)

EXTRA_DIST += \
	$(INTEROP_TESTS) \
	test/interop/await.sh \
	test/interop/beside.sh \
	test/interop/cost.sh \
	test/interop/datperf.sh \
	test/interop/figures.sh \
	test/interop/figures_datperf.sh \
	test/interop/lib.sh \
	test/interop/rxe.sh

# In one process with OFED's provider; needs a device, which the guest of contrib/vm has.
check_PROGRAMS += test/interop/providers
test_interop_providers_SOURCES = test/interop/providers.c
test_interop_providers_CPPFLAGS = $(pair_cppflags2)
test_interop_providers_LDADD = $(pair_ldadd2)
