# Debian's programs on the libraries of this project.

# The tests of a list have no port in common. TESTS has other tests between the lists, so that no
# job of make waits for the port of another.
interop_first = test/interop/dapltest.sh test/interop/dtest.sh
interop_next = test/interop/daplfft.sh test/interop/dtestsrq.sh
interop_last = test/interop/dtestx.sh
interop_end = test/interop/dtestcm.sh
INTEROP_TESTS += $(interop_first) $(interop_next) $(interop_last) $(interop_end)

EXTRA_DIST += \
	$(INTEROP_TESTS) \
	test/interop/await.sh \
	test/interop/compare.sh \
	test/interop/cost.sh \
	test/interop/datperf.sh \
	test/interop/figures.sh \
	test/interop/figures_datperf.sh \
	test/interop/lib.sh \
	test/interop/model.sh \
	test/interop/rxe.sh

# Needs a device with OFED's provider, as in the guest of contrib/vm.
check_PROGRAMS += test/interop/providers
test_interop_providers_SOURCES = test/interop/providers.c
test_interop_providers_CPPFLAGS = $(pair_cppflags2)
test_interop_providers_LDADD = $(pair_ldadd2)
