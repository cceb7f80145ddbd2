/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabrics that libfabric offers on this host, and their use for an IA. */
#ifndef DOFI_FAB_OFFERS_H
#define DOFI_FAB_OFFERS_H

#include "fab/params.h"
#include "fab/quirks.h"

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* A transport's requirements of a fabric. */
struct dofi_query {
	enum fi_ep_type type;
	uint64_t caps;
	uint64_t order;
	uint64_t op_flags;
	uint64_t mode;
	int mr_mode;
	bool target_rdma;	/* a result: see dofi_fabric_choice */
};

#define DOFI_QUERY_MR_MODES (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* The peer learns by a send that earlier writes are done. */
#define DOFI_QUERY_WRITES_ORDERED (FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW)

extern const struct dofi_query dofi_query_msg; /* for connected endpoints */
extern const struct dofi_query dofi_query_rdm; /* for connectionless endpoints of any fabric */

/* Lists the fabrics that answer @q, as @params select. The caller frees @list. */
int dofi_offers_list(const struct dofi_params *params, const struct dofi_query *q,
		     struct fi_info **list);

static inline const struct dofi_quirk *dofi_offer_quirk(const struct fi_info *info)
{
	return dofi_quirk_of(info->fabric_attr->prov_name);
}

/* Returns whether @provider is libfabric 1.17's net or a layer over it, which are not used. */
bool dofi_provider_is_preview(const char *provider);
/* Returns whether RDMA of the fabric is defective in this process. */
bool dofi_offer_lacks_rdma(const struct fi_info *info);
/* Returns whether endpoints of this kind and fabric can be used, whatever their domain. */
bool dofi_offer_usable(const struct fi_info *info);
/* Returns whether the fabric is a layer over another fabric. */
bool dofi_offer_layered(const struct fi_info *info);
/* Returns the IPv4 or IPv6 address of the interface; NULL if the fabric has no IP address. */
const struct sockaddr *dofi_offer_ip(const struct fi_info *info);
/* Returns whether the fabric is at the numeric address @text; true if it has no IP address. */
bool dofi_offer_has_address(const struct fi_info *info, const char *text);
/* Returns false for tcp without an address to listen at. */
bool dofi_offer_has_source(const struct fi_info *info);
/* Returns the attribute by which connectionless @info cannot carry DAT, or NULL. */
const char *dofi_offer_refusal(const struct fi_info *info);

/* Parses a numeric address. Returns its length; 0 if @text is empty or no address. */
socklen_t dofi_address_parse(const char *text, struct sockaddr_storage *address);
/* Returns whether an interface of this host has the numeric address @text. */
bool dofi_address_is_local(const char *text);

/* query.c: which fabric fits an IA, by dat.conf, FI_PROVIDER and policy. */

/*
 * Finds the fabric for @params, to be freed by the caller, and the query that it answered. Returns
 * 0; -FI_ENODATA if nothing fits (logged); or another negative errno of fi_getinfo().
 */
int dofi_query_find(const struct dofi_params *params, struct dofi_query *q, struct fi_info **info);

/* Whether the fabric of @info also satisfies @q. */
bool dofi_query_also(const struct fi_info *info, const struct dofi_query *q);

/* reason.c: why no fabric fits an IA. */

/* Logs why no fabric fits @params. Returns -FI_ENODATA. */
int dofi_reason_log(const struct dofi_params *params);

/* Lists of names in a string, separated by blanks. */
bool dofi_names_have(const char *names, const char *name);
/* Appends @name to @names, of @size bytes, unless it is NULL or listed. */
void dofi_names_add(char *names, size_t size, const char *name);

#endif
