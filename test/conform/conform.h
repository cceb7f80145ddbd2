/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The conformance suite: what the DAT text says of each call, clause by clause.
 *
 * A clause is a call, the DAT_RETURN or effect that the text names, and in which case:
 * "dat_evd_resize/INVALID_PARAMETER/zero". CLAUSE() names it and is followed by the function
 * body that tries it. That function gets an open IA with a PZ and EVDs of its own (struct node,
 * test/pair/pair.h) and need not free anything: afterwards the runner checks that the
 * asynchronous EVD is empty, and closes the IA abruptly before the next clause.
 *
 * All clauses run in one process, one after the other. One that fails a check, crashes or
 * hangs ends that process; the runner says which it was and goes on behind it in a new one.
 * Nothing here uses more of a provider than dat_* calls.
 *
 * A file of clauses is a chapter: it begins with CHAPTER("evd"), which is listed in conform.c.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include "../pair/pair.h"

#include <pthread.h>

struct clause {
	const char *chapter;
	int line;			/* the order within the chapter */
	const char *name;		/* call/return/case; of a family, what fits all of it */
	unsigned count;			/* of clauses in the family; 0 is no family */
	bool shared_ia;			/* one IA for all of the family, which leaves nothing behind */
	/* the i-th of the family; left empty: there is no such clause */
	void (*name_of)(unsigned i, char *name, size_t size);
	void (*run)(struct node *n, unsigned i);
	struct clause *next;
};

void conform_add(struct clause *c);

#define CHAPTER(name) static const char chapter[] = name

#define CONFORM_PASTE_(a, b) a##b
#define CONFORM_PASTE(a, b) CONFORM_PASTE_(a, b)
#define CONFORM_ID(prefix) CONFORM_PASTE(prefix, __LINE__)

#define CONFORM_CLAUSE(...)                                                          \
	static void CONFORM_ID(run_)(struct node *n, unsigned i);                    \
	static void __attribute__((constructor)) CONFORM_ID(add_)(void)              \
	{                                                                            \
		static struct clause c = {                                           \
			.chapter = chapter, .line = __LINE__,                        \
			.run = CONFORM_ID(run_), __VA_ARGS__                         \
		};                                                                   \
		conform_add(&c);                                                     \
	}                                                                            \
	static void CONFORM_ID(run_)(struct node *n __attribute__((unused)),         \
				     unsigned i __attribute__((unused)))

/* CLAUSE("dat_pz_create/SUCCESS") { ... n ... } */
#define CLAUSE(clause_name) CONFORM_CLAUSE(.name = (clause_name))

/* FAMILY(the number of clauses, the function that names each) { ... n, i ... } */
#define FAMILY(clauses, namer, ...) \
	CONFORM_CLAUSE(.count = (clauses), .name_of = (namer), ##__VA_ARGS__)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The clause cannot be tried here. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* It needs this member of DAT_IA_ATTR, or of DAT_PROVIDER_ATTR; the reason names it. */
#define NEEDS(attribute)                                                             \
	do {                                                                         \
		if (!n->attr.attribute)                                              \
			skip("%s is 0", #attribute);                                 \
	} while (0)
#define NEEDS_PROVIDER(attribute)                                                    \
	do {                                                                         \
		if (!n->prov.attribute)                                              \
			skip("%s is 0", #attribute);                                 \
	} while (0)

/* So many objects are made, which takes a while: of more than a few with --thorough only. */
#define AFFORD(attribute) afford(#attribute, n->attr.attribute)
void afford(const char *attribute, DAT_COUNT count);

/* As in pair.h, but that a call of pending.c may answer DAT_NOT_IMPLEMENTED: a skip. */
#undef OK
#undef FAILS
#define OK(call) conform_ret(__FILE__, __LINE__, #call, (call), DAT_SUCCESS)
#define FAILS(call, type) conform_ret(__FILE__, __LINE__, #call, (call), (type))
void conform_ret(const char *file, int line, const char *call, DAT_RETURN ret, DAT_RETURN type);

/*
 * What is not there yet: calls, whose DAT_NOT_IMPLEMENTED is a skip, and patterns of clauses,
 * which are not tried; those have a slash. NULL ends them.
 */
extern const char *const conform_pending[];

/* Two EPs of one IA, connected to each other; each has EVDs of its own. */
struct end {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv, req, conn;
};

struct couple {
	struct end a;			/* connected */
	struct end b;			/* accepted */
	struct mem m;			/* memory with all privileges */
};

#define COUPLE_MEMORY 65536

void end_open(struct node *n, struct end *e, const DAT_EP_ATTR *attr);
/* Two unconnected EPs and the memory; attributes may be NULL. */
void couple_make(struct node *n, struct couple *c, const DAT_EP_ATTR *attr_a,
		 const DAT_EP_ATTR *attr_b);
/* Connects them. */
void couple_connect(struct node *n, struct couple *c);
/* Both. */
void couple_open(struct node *n, struct couple *c);
/* Disconnects from @first's side and expects one DISCONNECTED on each. */
void couple_part(struct couple *c, struct end *first);
/* Begins to connect @e to a new PSP of the IA, and returns the request. */
DAT_CR_HANDLE end_request(struct node *n, struct end *e, DAT_PSP_HANDLE *psp);
/* Memory of the couple as the peer addresses it. */
DAT_RMR_TRIPLET mem_remote(const struct mem *m, size_t offset, size_t length);

/* Objects by DAT_HANDLE_TYPE. */
#define N_TYPES (DAT_HANDLE_TYPE_SRQ + (DAT_VERSION_MAJOR >= 2 ? 2 : 1))
const char *type_name(DAT_HANDLE_TYPE type);
/* Whether this provider has such objects; if not, making one skips the clause. */
bool type_is_there(struct node *n, DAT_HANDLE_TYPE type);
/* A new one. */
DAT_HANDLE object_make(struct node *n, DAT_HANDLE_TYPE type);
void object_free(DAT_HANDLE_TYPE type, DAT_HANDLE handle);
/* The clause's own one, made when it is first asked for. */
DAT_HANDLE object(struct node *n, DAT_HANDLE_TYPE type);
/* A new clause begins. */
void objects_forget(void);
/* A connection qualifier that nobody listens on. */
DAT_CONN_QUAL free_qualifier(struct node *n);

#if DAT_VERSION_MAJOR >= 2
/* What addresses of the IA's kind are of. */
DAT_COMM *stream_comm(struct node *n);
/* One with a port that nobody listens on. */
DAT_IA_ADDRESS_PTR free_address(struct node *n);
#endif

/* Calls in a form that both API versions have. */
DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *part,
		    DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie,
		    DAT_RMR_CONTEXT *context);
DAT_RETURN lmr_create_as(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			 DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			 DAT_LMR_HANDLE *lmr);

/* A thread that is blocked in dat_evd_wait() or dat_cno_wait(), and what it got. */
struct waiter {
	pthread_t thread;
	DAT_HANDLE handle;
	DAT_COUNT threshold;	/* 0: of a CNO */
	pid_t tid;
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_EVD_HANDLE evd;	/* that the CNO told */
	bool done;		/* atomic */
};

/* Each returns when the thread sleeps. */
void evd_waiter_start(struct waiter *w, DAT_EVD_HANDLE evd, DAT_COUNT threshold);
void cno_waiter_start(struct waiter *w, DAT_CNO_HANDLE cno);
/* The thread's call returns. */
void waiter_joins(struct waiter *w);
/* With this. */
void waiter_ends(struct waiter *w, DAT_RETURN type);
/* A signal ends it. */
void waiter_interrupted(struct waiter *w);
/* Signals whose handler asks for a restart do not, an event of @evd does. */
void waiter_restarted(struct waiter *w, DAT_EVD_HANDLE evd);

/* Posts one software event, which the EVD must take. */
void put_se(DAT_EVD_HANDLE evd, uintptr_t pointer);
/* The number of events on an EVD, which are gone then. */
unsigned drain(DAT_EVD_HANDLE evd);

#endif
