/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric of datagrams (FI_EP_DGRAM) of an IA that connects on another fabric. */
#ifndef DOFI_FAB_DATAGRAM_H
#define DOFI_FAB_DATAGRAM_H

#include "fab/info.h"

struct fid_fabric;

/*
 * Finds the fabric of datagrams of an IA at @address that connects on @main: that of the same
 * device for verbs, udp at @address for software. It is for dofi_rdm_open(): its frame_size is the
 * longest datagram, without a prefix. Returns 0; -ENODATA if there is none, also if FI_PROVIDER
 * excludes it; or another negative errno of fi_getinfo(). dofi_fabric_release() frees the choice.
 */
int dofi_datagram_choose(const struct dofi_fabric_choice *main,
			 const struct sockaddr_storage *address,
			 struct dofi_fabric_choice *choice);

/*
 * Opens the fabric of @choice, for dofi_domain_open_on(). The caller closes it by fi_close().
 * Returns 0 or a negative errno.
 */
int dofi_datagram_start(const struct dofi_fabric_choice *choice, struct fid_fabric **fabric);

#endif
