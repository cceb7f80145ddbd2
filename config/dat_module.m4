# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# DAT_OPTIONAL_MODULE(NAME, PKG-CONFIG-MODULE, yes|no|auto, OPTION)
# Looks for an optional package: "yes" requires it, "no" does not look. Sets
# NAME_CFLAGS, NAME_LIBS, the Automake conditional HAVE_NAME and $dat_have_NAME.
AC_DEFUN([DAT_OPTIONAL_MODULE], [
	dat_have_$1=no
	AS_IF([test "x$3" != xno],
		[PKG_CHECK_MODULES([$1], [$2], [dat_have_$1=yes],
			[AS_IF([test "x$3" != xauto],
				[AC_MSG_ERROR([$4 was given, but pkg-config does not find $2])])])])
	AM_CONDITIONAL([HAVE_$1], [test $dat_have_$1 = yes])
])
