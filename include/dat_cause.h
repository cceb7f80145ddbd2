/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Causes for which an IA does not work. Not installed; uses no DAT type. A line of the log with a
 * cause has DAT_CAUSE_TAG and its number; datinfo --doctor finds the remedy by the number.
 * dat_ofi(7) lists them: a number keeps its meaning.
 */
#ifndef DAT_CAUSE_H
#define DAT_CAUSE_H

#define DAT_CAUSE_TAG " [cause "
/* For printf(), with a number. */
#define DAT_CAUSE_FORMAT DAT_CAUSE_TAG "%d]"

enum dat_cause {
	DAT_CAUSE_FILTER = 1,	   /* FI_PROVIDER excludes all fabrics that would do */
	DAT_CAUSE_DOMAIN = 2,	   /* no domain has the name of domain= */
	DAT_CAUSE_ADDRESS = 3,	   /* this machine does not have the address of address= */
	DAT_CAUSE_INTERFACE = 4,   /* FI_TCP_IFACE names no interface */
	DAT_CAUSE_PARAMS = 5,	   /* the seventh field of dat.conf is malformed */
	DAT_CAUSE_NO_OFFER = 6,	   /* libfabric offers no fabric for the seventh field */
	DAT_CAUSE_PREVIEW = 7,	   /* the fabric is net, libfabric 1.17's preview of tcp */
	DAT_CAUSE_LIBRARY = 8,	   /* the library of the fifth field cannot be loaded */
	DAT_CAUSE_LIBFABRIC = 9,   /* libfabric is not installed */
	DAT_CAUSE_OLD = 10,	   /* libfabric is older than the one that the provider needs */
	DAT_CAUSE_FOREIGN = 11,	   /* the library of the fifth field is no provider */
	DAT_CAUSE_RINGS = 12,	   /* shared memory has no connected endpoints */
	DAT_CAUSE_UNREACHED = 13,  /* no connection to this host's own address */
	DAT_CAUSE_HANG = 14,	   /* the fabric hangs */
	DAT_CAUSES
};

#endif
