# Debian's own programs on our libraries.

INTEROP_TESTS += \
	test/interop/dtest.sh \
	test/interop/dtestcm.sh \
	test/interop/dtestx.sh \
	test/interop/dtestsrq.sh \
	test/interop/dapltest.sh \
	test/interop/daplfft.sh

EXTRA_DIST += \
	$(INTEROP_TESTS) \
	test/interop/lib.sh
