# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The compiler's flags: warnings, assertions, sanitizers, coverage.

# DAT_CC_FLAGS(VARIABLE, FLAGS) - appends each flag that the compiler supports
AC_DEFUN([DAT_CC_FLAGS], [
	for dat_flag in $2; do
		AC_MSG_CHECKING([whether $CC accepts $dat_flag])
		dat_saved=$CFLAGS
		CFLAGS="$CFLAGS -Werror $dat_flag"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
			[AC_MSG_RESULT([yes]); $1="$$1 $dat_flag"],
			[AC_MSG_RESULT([no])])
		CFLAGS=$dat_saved
	done
])

# DAT_FLOOR - refuses a compiler or a C library that is older than the oldest supported one
AC_DEFUN([DAT_FLOOR], [
	AC_MSG_CHECKING([whether $CC and its C library are new enough])
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <limits.h>
#if defined(__clang__) ? __clang_major__ < 7 : defined(__GNUC__) && __GNUC__ < 8
#error the compiler
#endif
#if defined(__GLIBC__) && !(__GLIBC__ > 2 || __GLIBC_MINOR__ >= 28)
#error the C library
#endif
		]], [])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([GCC 8 or clang 7 is needed, and glibc 2.28 or musl 1.2, or newer])])
])

# DAT_DEBUG - --enable-debug; DEBUG_CPPFLAGS turns the libraries' assertions off without it. It is
# not part of AM_CPPFLAGS, because the assertions of tests are always checked. CHECKS_CPPFLAGS
# enables what records the owner of each lock: it changes structures, so tests need it as well.
AC_DEFUN([DAT_DEBUG], [
	AC_ARG_ENABLE([debug],
		[AS_HELP_STRING([--enable-debug], [check assertions, and optimise less])],
		[], [enable_debug=no])
	AS_IF([test "x$enable_debug" = xno],
		[DEBUG_CPPFLAGS=-DNDEBUG; CHECKS_CPPFLAGS=; dat_optimize=-O2],
		[DEBUG_CPPFLAGS=; CHECKS_CPPFLAGS=-DDOFI_CHECKS; dat_optimize=-Og])
	AC_SUBST([DEBUG_CPPFLAGS])
	AC_SUBST([CHECKS_CPPFLAGS])
	AM_CONDITIONAL([CHECKS], [test "x$enable_debug" != xno])
])

# DAT_WARNINGS - --enable-werror; sets WARN_CFLAGS
AC_DEFUN([DAT_WARNINGS], [
	AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])],
		[], [enable_werror=no])
	WARN_CFLAGS=
	DAT_CC_FLAGS([WARN_CFLAGS], [-Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes \
		-Wpointer-arith -Wundef -Wvla -Wthread-safety \
		-Wno-gnu-variable-sized-type-not-at-end])
	AS_IF([test "x$enable_werror" != xno], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
	AC_SUBST([WARN_CFLAGS])
])

# DAT_CODE - sets CODE_CFLAGS, which shorten the data path. Calls to other libraries bypass the PLT,
# and two scalar stores are not merged into a vector store.
AC_DEFUN([DAT_CODE], [
	CODE_CFLAGS=
	DAT_CC_FLAGS([CODE_CFLAGS], [-fno-plt -fno-tree-slp-vectorize])
	AC_SUBST([CODE_CFLAGS])
])

# DAT_INSTRUMENT - --enable-sanitizer=LIST and --enable-coverage. They must reach every object and
# every link, including those of tests with flags of their own, and so go to CFLAGS and LDFLAGS.
# Sets LIB_LDFLAGS, which refuses libraries with undefined symbols, where possible.
AC_DEFUN([DAT_INSTRUMENT], [
	AC_ARG_ENABLE([sanitizer],
		[AS_HELP_STRING([--enable-sanitizer=LIST],
			[build with sanitizers: address,undefined or thread])],
		[], [enable_sanitizer=no])
	AC_ARG_ENABLE([coverage],
		[AS_HELP_STRING([--enable-coverage], [count the lines that run, for gcov])],
		[], [enable_coverage=no])
	dat_instrument=
	AS_CASE([$enable_sanitizer],
		[no], [],
		[yes], [AC_MSG_ERROR([--enable-sanitizer needs a list: address,undefined or thread])],
		[dat_instrument="-fsanitize=$enable_sanitizer -fno-sanitize-recover=all \
-fno-omit-frame-pointer"; dat_optimize=-O1])
	AS_IF([test "x$enable_coverage" != xno],
		[dat_instrument="$dat_instrument --coverage"; dat_optimize=-O0])
	AC_ARG_VAR([CHECK_CFLAGS], [more CFLAGS for most tests (-O0 if CFLAGS is not set)])
	AS_IF([test -z "$dat_user_cflags"],
		[CFLAGS="-g $dat_optimize"; CHECK_CFLAGS=${CHECK_CFLAGS--O0}])
	AS_IF([test -n "$dat_instrument"], [
		CFLAGS="$CFLAGS $dat_instrument"
		LDFLAGS="$LDFLAGS $dat_instrument"
		AC_MSG_CHECKING([whether $CC links with $dat_instrument])
		AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no]); AC_MSG_ERROR([the requested instrumentation does not work])])
	])
	# The run-time of a sanitizer may be linked to the program only, and is then undefined in a
	# library.
	LIB_LDFLAGS=
	AS_IF([test "x$enable_sanitizer" = xno], [LIB_LDFLAGS="-no-undefined -Wl,-z,defs"])
	AC_SUBST([LIB_LDFLAGS])
	AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
])
