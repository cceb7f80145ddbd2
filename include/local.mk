# Public headers: uDAPL 1.2 as <dat/...>, DAT 2.0 as <dat2/...>; and the tests of their ABI.

dat1incdir = $(includedir)/dat
dat1inc_HEADERS = \
	include/dat/dat.h \
	include/dat/dat_error.h \
	include/dat/dat_names.h \
	include/dat/dat_platform_specific.h \
	include/dat/dat_redirection.h \
	include/dat/dat_registry.h \
	include/dat/dat_vendor_specific.h \
	include/dat/udat.h \
	include/dat/udat_config.h \
	include/dat/udat_redirection.h \
	include/dat/udat_vendor_specific.h

dat2incdir = $(includedir)/dat2
dat2inc_HEADERS = \
	include/dat2/dat.h \
	include/dat2/dat_error.h \
	include/dat2/dat_ib_extensions.h \
	include/dat2/dat_names.h \
	include/dat2/dat_platform_specific.h \
	include/dat2/dat_redirection.h \
	include/dat2/dat_registry.h \
	include/dat2/dat_vendor_specific.h \
	include/dat2/udat.h \
	include/dat2/udat_config.h \
	include/dat2/udat_redirection.h \
	include/dat2/udat_vendor_specific.h

ABI_TESTS += \
	test/abi/abi.sh \
	test/abi/headers_alone.sh \
	test/abi/macros.sh

EXTRA_DIST += \
	$(ABI_TESTS) \
	include/dat_select.h \
	include/dat_cause.h \
	include/secure_env.h \
	test/abi/check_abi.py \
	test/abi/dat-1.2.abi.json \
	test/abi/dat-2.0.abi.json \
	test/abi/macros.c
