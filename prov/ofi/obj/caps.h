/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capability table: one row for each DAT attribute. */
#ifndef DOFI_OBJ_CAPS_H
#define DOFI_OBJ_CAPS_H

#include "obj/obj.h"

#include <stdbool.h>

/* Most segments of any operation on any fabric; sizes the slots. */
#define DOFI_MAX_IOV 8

/* The call with the member in its structure: dat_ia_query, or dat_ep_query and dat_ep_modify. */
enum dofi_cap_of {
	DOFI_CAP_IA,
	DOFI_CAP_PROVIDER,
	DOFI_CAP_EP,
};

/* EP states, as bits and in words. */
struct dofi_cap_states {
	uint32_t bits;
	const char *words;
};

/* The named attributes about a row, by their prefixes, as datinfo shows them. */
enum {
	DOFI_NAMED_SOURCE,
	DOFI_NAMED_ADDS,
	DOFI_NAMED_LIMIT,
	DOFI_NAMED_MODIFY,
	DOFI_NAMED_KINDS
};

/*
 * An attribute. Most members apply to few rows, and are 0 in the others.
 *
 * A row of the IA or provider: fill() writes the value. Without fill() the value is `most`, or what
 * the IA has at `from` if that is less, or `without` if the bool that the IA has at `where` is
 * false.
 *
 * A row of the EP is an attribute that a program may ask for if it has a size. The value passes
 * take(), and may be as high as the value of the IA's row `limit`, or as `most`.
 */
struct dofi_cap {
	const char *name;			/* of the member of the DAT structure */
	const char *named[DOFI_NAMED_KINDS];		/* the named attributes about the row */
	enum dofi_cap_of of;
	uint64_t field;				/* its bit in the masks of query and modify */
	/* in DAT_IA_ATTR, DAT_PROVIDER_ATTR or DAT_EP_ATTR */
	uint16_t offset, size;

	void (*fill)(const struct dofi_ia *ia, void *member);
	uint64_t most;
	const char *word;			/* the name of `most` */
	/* the offset and size of a member of struct dofi_ia */
	uint16_t from, from_size;
	uint16_t where;				/* the offset of a member of struct dofi_ia */
	uint64_t without;

	uint64_t limit;				/* the field of the row of the IA */
	uint64_t def;				/* the value for NULL; the limit may be lower */
	bool zero_is_default;			/* programs pass 0 for the default */
	bool (*take)(const struct dofi_ia *ia, uint64_t *value);
	const char *takes;			/* the values that pass take(), if not all do */
	/* the states in which it may be modified; NULL: never */
	const struct dofi_cap_states *when;
	/* it may be modified only while no receive is posted */
	bool no_receives;

	/* where the value comes from: libfabric's name; NULL: from nowhere */
	const char *source;
	/* the provider's addition where the fabric lacks it */
	const char *adds;
};

extern const struct dofi_cap dofi_caps[];
extern const size_t dofi_n_caps;

bool dofi_qos_known(DAT_QOS qos);

/* The row of one bit of a mask, or NULL. */
const struct dofi_cap *dofi_caps_row(enum dofi_cap_of of, uint64_t field);

/* The value of the IA attribute DAT_IA_FIELD_... @field, which is a number. */
uint64_t dofi_caps_value(const struct dofi_ia *ia, uint64_t field);

/* How many objects of @type an IA may have at once. */
DAT_COUNT dofi_caps_max_objects(const struct dofi_ia *ia, DAT_HANDLE_TYPE type);

void dofi_caps_ia_attr(const struct dofi_ia *ia, DAT_IA_ATTR *attr);
void dofi_caps_provider_attr(const struct dofi_ia *ia, DAT_PROVIDER_ATTR *attr);

/* Renders the named attributes of @ia, about the fabric and the rows. */
void dofi_caps_named_attrs(struct dofi_ia *ia);

DAT_RETURN dofi_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd,
			 DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			 DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr);

/*
 * The attributes of an endpoint for a request of @wanted (NULL: the defaults).
 * DAT_INVALID_PARAMETER if one exceeds the IA's limits, or DAT_MODEL_NOT_SUPPORTED for a quality of
 * service. A datagram EP has its own maximum message size: programs may request more.
 */
DAT_RETURN dofi_caps_ep_attr(const struct dofi_ia *ia, const DAT_EP_ATTR *wanted,
			     DAT_EP_ATTR *attr);

/* Whether @attr, which may be NULL, is of a datagram EP, and @ia has datagrams. */
bool dofi_caps_is_datagram(const struct dofi_ia *ia, const DAT_EP_ATTR *attr);

/* Sets the attribute of @row in @attr; returns false without side effects if it is refused. */
bool dofi_caps_ep_take(const struct dofi_ia *ia, const struct dofi_cap *row,
		       const DAT_EP_ATTR *wanted, DAT_EP_ATTR *attr);

#endif
