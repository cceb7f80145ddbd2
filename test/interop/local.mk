# Debian's own programs on our libraries.

# Neighbours in this list have other ports, so that one does not wait for the other.
INTEROP_TESTS += \
	test/interop/dapltest.sh \
	test/interop/dtest.sh \
	test/interop/daplfft.sh \
	test/interop/dtestx.sh \
	test/interop/dtestsrq.sh \
	test/interop/dtestcm.sh

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
