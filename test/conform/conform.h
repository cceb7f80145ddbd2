/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The conformance suite: the requirements of the DAT text on each call, clause by clause.
 *
 * A clause is a call, the DAT_RETURN or effect that the text names, and the case it applies to:
 * "dat_evd_resize/INVALID_PARAMETER/zero". CLAUSE() names the clause and is followed by the body
 * of the function that tests it. The function gets an open IA with a PZ and EVDs of its own
 * (struct node, test/pair/pair.h) and need not free anything: afterwards the runner checks that
 * the asynchronous EVD is empty, and closes the IA abruptly before the next clause.
 *
 * All clauses run one after the other in one process. A clause that fails a check, crashes or
 * hangs ends that process; the runner reports the clause and continues after it in a new process.
 * The suite uses only dat_* calls of a provider.
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
	const char *name;		/* call/return/case; the common part in a family */
	unsigned count;			/* clauses in the family; 0: not a family */
	bool shared_ia;			/* one IA for the family; clauses free their objects */
	/* writes the name of the i-th clause of the family; an empty name: no such clause */
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
	static void CONFORM_ID(run_)(struct node *n, unsigned i)

/* CLAUSE("dat_pz_create/SUCCESS") { ... n ... } */
#define CLAUSE(clause_name) CONFORM_CLAUSE(.name = (clause_name))

/* FAMILY(the number of clauses, the function that names each) { ... n, i ... } */
#define FAMILY(clauses, namer, ...) \
	CONFORM_CLAUSE(.count = (clauses), .name_of = (namer), ##__VA_ARGS__)

/*
 * A clause with an object of its own: CLAUSE_WITH(couple, c, couple_open, "dat_ep_free/SUCCESS")
 * { ... n, c ... }. COUPLED() is one with a couple (below).
 */
#define CLAUSE_WITH(type, object, open, clause_name)                                 \
	static void CONFORM_ID(with_)(struct node *n, struct type *object);          \
	CLAUSE(clause_name)                                                          \
	{                                                                            \
		struct type object;                                                  \
		open(n, &object);                                                    \
		CONFORM_ID(with_)(n, &object);                                       \
	}                                                                            \
	static void CONFORM_ID(with_)(struct node *n, struct type *object)
#define COUPLED(clause_name) CLAUSE_WITH(couple, c, couple_open, clause_name)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Ends the clause as one that cannot be tested here. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/*
 * The clause needs this member of DAT_IA_ATTR or DAT_PROVIDER_ATTR; the reason for a skip names
 * it.
 */
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

/*
 * The clause needs a provider that refuses what DAT forbids, or one that accepts it, according to
 * the named attribute OFI_STRICT. A provider without the attribute refuses.
 */
void needs_strict(const struct node *n, bool strict);

/*
 * Skips the clause if it would create too many objects: more than a few thousand need --thorough.
 */
#define SKIP_IF_TOO_MANY(attribute) skip_if_too_many(#attribute, n->attr.attribute)
void skip_if_too_many(const char *attribute, DAT_COUNT count);

/* As in pair.h, but DAT_NOT_IMPLEMENTED from a call of pending.c is a skip. */
#undef OK
#undef FAILS
#define OK(call) conform_ret(__FILE__, __LINE__, #call, (call), DAT_SUCCESS)
#define FAILS(call, type) conform_ret(__FILE__, __LINE__, #call, (call), (type))
void conform_ret(const char *file, int line, const char *call, DAT_RETURN ret, DAT_RETURN type);

/*
 * Not implemented yet, NULL-terminated: names of calls (DAT_NOT_IMPLEMENTED is a skip), and
 * patterns of clauses, which contain a slash and are not run.
 */
extern const char *const conform_pending[];

/* Two EPs of one IA, connected to each other; each has EVDs of its own. */
struct end {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv, req, conn;
};

struct couple {
	struct end a;			/* the end that connected */
	struct end b;			/* the end that accepted */
	struct mem m;			/* memory with all privileges */
};

#define COUPLE_MEMORY 65536

void end_open(struct node *n, struct end *e, const DAT_EP_ATTR *attr);
/* Creates two unconnected EPs and the memory; attributes may be NULL. */
void couple_make(struct node *n, struct couple *c, const DAT_EP_ATTR *attr_a,
		 const DAT_EP_ATTR *attr_b);
void couple_connect(struct node *n, struct couple *c);
/* couple_make() and couple_connect(). */
void couple_open(struct node *n, struct couple *c);
/* Disconnects @first and expects one DISCONNECTED on each end. */
void couple_disconnect(struct couple *c, struct end *first);
/* Begins to connect @e to a new PSP of the IA, and returns the request. */
DAT_CR_HANDLE end_request(struct node *n, struct end *e, DAT_PSP_HANDLE *psp);
/* Memory of the couple as the peer addresses it. */
DAT_RMR_TRIPLET mem_remote(const struct mem *m, size_t offset, size_t length);

/* Objects by DAT_HANDLE_TYPE. */
#define N_TYPES (DAT_HANDLE_TYPE_SRQ + (DAT_VERSION_MAJOR >= 2 ? 2 : 1))
const char *type_name(DAT_HANDLE_TYPE type);
/* Whether the provider has objects of this type; if not, object_make() skips the clause. */
bool type_is_supported(struct node *n, DAT_HANDLE_TYPE type);
/* Creates a new object. */
DAT_HANDLE object_make(struct node *n, DAT_HANDLE_TYPE type);
void object_free(DAT_HANDLE_TYPE type, DAT_HANDLE handle);
/* Returns the clause's own object of this type, created on first use. */
DAT_HANDLE object(struct node *n, DAT_HANDLE_TYPE type);
/* Called when a new clause begins. */
void objects_reset(void);
/* A connection qualifier without a listener. */
DAT_CONN_QUAL free_qualifier(struct node *n);

#if DAT_VERSION_MAJOR >= 2
/* The DAT_COMM of the IA's address family. */
DAT_COMM *stream_comm(struct node *n);
/* An address with a port that has no listener. */
DAT_IA_ADDRESS_PTR free_address(struct node *n);
#endif

/* Calls with the arguments that both API versions have. */
DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *part,
		    DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie,
		    DAT_RMR_CONTEXT *context);
DAT_RETURN lmr_create_as(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			 DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			 DAT_LMR_HANDLE *lmr);

/* A thread that is blocked in dat_evd_wait() or dat_cno_wait(), and the result of the call. */
struct waiter {
	pthread_t thread;
	DAT_HANDLE handle;
	DAT_COUNT threshold;	/* 0: waits on a CNO */
	pid_t tid;
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_EVD_HANDLE evd;	/* returned by dat_cno_wait() */
	bool done;		/* atomic */
};

/* Each returns once the thread sleeps. */
void evd_waiter_start(struct waiter *w, DAT_EVD_HANDLE evd, DAT_COUNT threshold);
void cno_waiter_start(struct waiter *w, DAT_CNO_HANDLE cno);
/* Waits until the thread's call returns. */
void waiter_join(struct waiter *w);
/* Waits until the thread's call returns this. */
void waiter_expect(struct waiter *w, DAT_RETURN type);
/* A signal ends the wait. */
void waiter_expect_interrupt(struct waiter *w);
/* With SA_RESTART a signal does not end the wait; an event of @evd does. */
void waiter_expect_restart(struct waiter *w, DAT_EVD_HANDLE evd);

/* Posts one software event; the EVD must have room for it. */
void put_se(DAT_EVD_HANDLE evd, uintptr_t pointer);
/* Dequeues all events of an EVD and returns their number. */
unsigned drain(DAT_EVD_HANDLE evd);

#endif
