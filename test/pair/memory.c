/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All kinds of memory between two processes: of another LMR, shared by a cookie, with zero-based
 * addresses.
 */

#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 65536u
#define PART 4096u		/* of the memory, moved by one operation */

/* The arguments of dat_lmr_create() that both versions have. */
struct args {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz;
	DAT_MEM_PRIV_FLAGS priv;
	bool zero_based;	/* 2.0 only */
};

/* Creates the LMR of @w and fills in @m. The base is where the addresses of its segments begin. */
static DAT_RETURN make(struct node *n, const struct args *w, struct mem *m)
{
	DAT_VADDR address;
	DAT_VLEN size;
	DAT_RETURN ret;

#if DAT_VERSION_MAJOR >= 2
	ret = dat_lmr_create(n->ia, w->type, w->region, w->length, w->pz, w->priv,
			     w->zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA, &m->lmr,
			     &m->lmr_context, &m->rmr_context, &size, &address);
#else
	ret = dat_lmr_create(n->ia, w->type, w->region, w->length, w->pz, w->priv, &m->lmr,
			     &m->lmr_context, &m->rmr_context, &size, &address);
#endif
	if (ret)
		return ret;
	m->base = w->zero_based ? NULL : (unsigned char *)(uintptr_t)address;
	m->size = size;
	return DAT_SUCCESS;
}

static DAT_LMR_PARAM query(const struct mem *m)
{
	DAT_LMR_PARAM param;

	OK(dat_lmr_query(m->lmr, DAT_LMR_FIELD_ALL, &param));
	SAME(param.lmr_context, m->lmr_context);
	SAME(param.rmr_context, m->rmr_context);
	SAME(param.registered_size, m->size);
	return param;
}

/* The peer's part: writes one part of the memory, reads it back, and receives the next part. */
static void visit(struct pair *p, struct node *n, DAT_EP_HANDLE ep, unsigned seed)
{
	struct grant g;
	struct mem m;

	mem_get(n, &m, 3 * PART);
	pair_granted(p, &g);
	fill(m.base, PART, seed);
	post_write(ep, &m, 0, PART, 1, &g, PART);
	expect_dto(n->req, 1, DAT_DTO_SUCCESS, PART);
	post_read(ep, &m, PART, PART, 2, &g, PART);
	expect_dto(n->req, 2, DAT_DTO_SUCCESS, PART);
	verify(m.base + PART, PART, seed);
	post_recv(ep, &m, 2 * PART, PART, 3);
	pair_sync(p);
	expect_dto(n->recv, 3, DAT_DTO_SUCCESS, PART);
	verify(m.base + 2 * PART, PART, seed + 1);
	mem_put(&m);
}

/* The owner's part for the memory of @m, which is mapped at @at. */
static void host(struct pair *p, struct node *n, DAT_EP_HANDLE ep, const struct mem *m, void *at,
		 unsigned seed)
{
	pair_grant(p, m);
	fill((char *)at + 2 * PART, PART, seed + 1);
	pair_sync(p);
	post_send(ep, m, 2 * PART, PART, 4);
	expect_dto(n->req, 4, DAT_DTO_SUCCESS, PART);
	verify((char *)at + PART, PART, seed);
}

/*
 * An LMR made of another one: with another PZ and more privileges, and after the first LMR is
 * freed
 */

static void derived_server(struct pair *p)
{
	struct mem first, second, third;
	DAT_LMR_PARAM param;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;
	struct node n;

	node_open(&n);
	SAME(n.prov.lmr_mem_types_supported, DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
	mem_get_with(&n, n.pz, &first, SIZE, PRIV_LOCAL);
	OK(dat_pz_create(n.ia, &pz));
	OK(make(&n, &(struct args){ DAT_MEM_TYPE_LMR, { .for_lmr_handle = first.lmr }, 0, pz,
				    DAT_MEM_PRIV_ALL_FLAG, false }, &second));
	SAME(second.size, SIZE);
	CHECK(second.base == first.base && second.rmr_context, "not the same memory");
	param = query(&second);
	SAME(param.mem_type, DAT_MEM_TYPE_LMR);
	CHECK(param.region_desc.for_lmr_handle == first.lmr && param.pz_handle == pz,
	      "wrong LMR or PZ");
	OK(dat_lmr_free(first.lmr));
	FAILS(make(&n, &(struct args){ DAT_MEM_TYPE_LMR, { .for_lmr_handle = first.lmr }, SIZE, pz,
				       DAT_MEM_PRIV_ALL_FLAG, false }, &third), DAT_INVALID_HANDLE);
	OK(make(&n, &(struct args){ DAT_MEM_TYPE_LMR, { .for_lmr_handle = second.lmr }, 0, n.pz,
				    PRIV_LOCAL, false }, &third));
	SAME(third.rmr_context, 0);
	ep = link_in(p, &n, pz);
	host(p, &n, ep, &second, first.base, 5);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	FAILS(dat_pz_free(pz), DAT_INVALID_STATE);
	OK(dat_lmr_free(second.lmr));
	OK(dat_pz_free(pz));
	mem_put(&third);
	node_close(&n);
}

static void visitor(struct pair *p)
{
	struct node n;

	node_open(&n);
	n.ep = link_in(p, &n, n.pz);
	visit(p, &n, n.ep, 5);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* Shared memory: each of two processes registers its own mapping */

static char cookie[DAT_LMR_COOKIE_SIZE] = "every byte counts";

static struct args shared_at(struct node *n, void *at, DAT_VLEN length)
{
	return (struct args){
		DAT_MEM_TYPE_SHARED_VIRTUAL,
		{ .for_shared_memory = { .virtual_address = at, .shared_memory_id = &cookie } },
		length, n->pz, DAT_MEM_PRIV_ALL_FLAG, false,
	};
}

static void *map(int fd, int flags, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(at != MAP_FAILED, "%s", strerror(errno));
	return at;
}

static void register_shared(struct node *n, int fd, struct mem *m)
{
	struct args w = shared_at(n, map(fd, MAP_SHARED, SIZE), SIZE);
	DAT_SHARED_MEMORY reported;
	DAT_LMR_PARAM param;

	OK(make(n, &w, m));
	CHECK(m->base == w.region.for_shared_memory.virtual_address, "wrong address");
	param = query(m);
	reported = param.region_desc.for_shared_memory;
	SAME(param.mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
	CHECK(reported.virtual_address == m->base, "wrong address");
	CHECK(reported.shared_memory_id &&
		      !memcmp(*reported.shared_memory_id, cookie, sizeof(cookie)),
	      "wrong cookie");
}

/* Memory that does not match the cookie is refused. */
static void misuse_shared(struct node *n, const struct mem *m)
{
	void *private = map(-1, MAP_PRIVATE | MAP_ANONYMOUS, SIZE);
	void *other = map(-1, MAP_SHARED | MAP_ANONYMOUS, SIZE);
	struct args w = shared_at(n, private, SIZE);
	struct mem none;

	FAILS(make(n, &w, &none), DAT_INVALID_STATE);
	w = shared_at(n, other, SIZE);
	FAILS(make(n, &w, &none), DAT_INVALID_STATE);	/* the cookie belongs to other memory */
	cookie[DAT_LMR_COOKIE_SIZE - 1] ^= 1;
	OK(make(n, &w, &none));
	OK(dat_lmr_free(none.lmr));
	cookie[DAT_LMR_COOKIE_SIZE - 1] ^= 1;
	w = shared_at(n, m->base, SIZE);
	OK(make(n, &w, &none));				/* the shared memory itself is accepted */
	OK(dat_lmr_free(none.lmr));
	w = shared_at(n, m->base, 0);
	FAILS(make(n, &w, &none), DAT_LENGTH_ERROR);
	w = shared_at(n, NULL, SIZE);
	FAILS(make(n, &w, &none), DAT_INVALID_PARAMETER);
	w = shared_at(n, m->base, SIZE);
	w.region.for_shared_memory.shared_memory_id = NULL;
	FAILS(make(n, &w, &none), DAT_INVALID_PARAMETER);
	munmap(private, SIZE);
	munmap(other, SIZE);
}

static void shared_server(struct pair *p)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	DAT_EP_HANDLE ep;
	struct node n;
	struct mem m;

	node_open(&n);
	CHECK(fd >= 0 && !ftruncate(fd, SIZE), "%s", strerror(errno));
	pair_send(p, &fd, sizeof(fd));
	register_shared(&n, fd, &m);
	misuse_shared(&n, &m);
	ep = link_in(p, &n, n.pz);
	pair_grant(p, &m);
	pair_sync(p);
	verify(m.base, PART, 1);		/* written by RDMA */
	verify(m.base + PART, PART, 2);		/* written through the mapping */
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	mem_put(&m);
	node_close(&n);
}

static void shared_client(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct grant g;
	char path[64];
	struct node n;
	struct mem m, own;
	int fd;

	node_open(&n);
	pair_recv(p, &fd, sizeof(fd));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)p->peer, fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	register_shared(&n, fd, &m);
	mem_get(&n, &own, 2 * PART);
	ep = link_in(p, &n, n.pz);
	pair_granted(p, &g);
	fill(own.base, PART, 1);
	post_write(ep, &own, 0, PART, 1, &g, 0);
	expect_dto(n.req, 1, DAT_DTO_SUCCESS, PART);
	verify(m.base, PART, 1);
	/* RDMA read from shared memory into shared memory */
	fill(m.base + 2 * PART, PART, 2);
	post_read(ep, &m, PART, PART, 2, &g, 2 * PART);
	expect_dto(n.req, 2, DAT_DTO_SUCCESS, PART);
	verify(m.base + PART, PART, 2);
	pair_sync(p);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	mem_put(&m);
	mem_put(&own);
	close(fd);
	node_close(&n);
}

#if DAT_VERSION_MAJOR >= 2
/* Zero-based addresses: LMRs, and RMRs of LMRs of either kind */

static bool has_zero_based(struct node *n)
{
	struct mem none;

	if (n->attr.zb_supported)
		return true;
	FAILS(make(n, &(struct args){ DAT_MEM_TYPE_VIRTUAL, { .for_va = &none }, 8, n->pz,
				      PRIV_LOCAL, true }, &none), DAT_MODEL_NOT_SUPPORTED);
	return false;
}

static DAT_RMR_CONTEXT bound(struct node *n, DAT_EP_HANDLE ep, DAT_RMR_HANDLE rmr,
			     const struct mem *m, size_t offset, size_t length, DAT_VA_TYPE type)
{
	const DAT_LMR_TRIPLET part = mem_segment(m, offset, length);
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;

	OK(dat_rmr_bind(rmr, m->lmr, &part, PRIV_BOTH, type, ep, (DAT_RMR_COOKIE){ .as_64 = 9 },
			DAT_COMPLETION_DEFAULT_FLAG, &context));
	expect_bind(n->req, rmr, 9, DAT_DTO_SUCCESS);
	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	SAME(param.va_type, type);
	SAME(param.lmr_triplet.virtual_address, part.virtual_address);
	return context;
}

/* An RMR of the last four parts of the memory. */
static void host_rmr(struct pair *p, struct node *n, DAT_EP_HANDLE ep, const struct mem *m,
		     unsigned char *at, DAT_VA_TYPE type, unsigned seed)
{
	const size_t offset = SIZE - 4 * PART;
	struct mem seen = *m;
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(n->pz, &rmr));
	seen.rmr_context = bound(n, ep, rmr, m, offset, 4 * PART, type);
	/* RDMA uses the RMR's addresses, the send the LMR's */
	seen.base = type == DAT_VA_TYPE_ZB ? NULL : at + offset;
	pair_grant(p, &seen);
	fill(at + offset + 2 * PART, PART, seed + 1);
	pair_sync(p);
	post_send(ep, m, offset + 2 * PART, PART, 4);
	expect_dto(n->req, 4, DAT_DTO_SUCCESS, PART);
	verify(at + offset + PART, PART, seed);
	OK(dat_rmr_free(rmr));
}

static void zero_server(struct pair *p)
{
	unsigned char *at = map(-1, MAP_PRIVATE | MAP_ANONYMOUS, SIZE);
	DAT_LMR_TRIPLET beyond = { .virtual_address = SIZE - 8, .segment_length = 9 };
	struct mem zero, plain;
	DAT_EP_HANDLE ep;
	struct node n;
	unsigned i;

	node_open(&n);
	if (!has_zero_based(&n))
		pair_skip("this fabric has no zero-based addresses");
	OK(make(&n, &(struct args){ DAT_MEM_TYPE_VIRTUAL, { .for_va = at }, SIZE, n.pz,
				    DAT_MEM_PRIV_ALL_FLAG, true }, &zero));
	OK(make(&n, &(struct args){ DAT_MEM_TYPE_LMR, { .for_lmr_handle = zero.lmr }, 0, n.pz,
				    DAT_MEM_PRIV_ALL_FLAG, false }, &plain));
	SAME(query(&zero).va_type, DAT_VA_TYPE_ZB);
	SAME(query(&zero).registered_address, (uintptr_t)at);
	SAME(query(&plain).va_type, DAT_VA_TYPE_VA);
	CHECK(plain.base == at, "wrong address");
	ep = link_in(p, &n, n.pz);
	host(p, &n, ep, &zero, at, 5);
	host_rmr(p, &n, ep, &zero, at, DAT_VA_TYPE_ZB, 5);
	host_rmr(p, &n, ep, &zero, at, DAT_VA_TYPE_VA, 5);
	host_rmr(p, &n, ep, &plain, at, DAT_VA_TYPE_ZB, 5);
	beyond.lmr_context = zero.lmr_context;
	FAILS(dat_ep_post_recv(ep, 1, &beyond, (DAT_DTO_COOKIE){ .as_64 = 1 }, 0),
	      DAT_INVALID_PARAMETER);
	beyond.virtual_address = (uintptr_t)at;
	FAILS(dat_ep_post_recv(ep, 1, &beyond, (DAT_DTO_COOKIE){ .as_64 = 1 }, 0),
	      DAT_INVALID_PARAMETER);
	OK(dat_lmr_sync_rdma_read(n.ia, &(DAT_LMR_TRIPLET){ .lmr_context = zero.lmr_context,
							    .segment_length = SIZE }, 1));
	FAILS(dat_lmr_sync_rdma_write(n.ia, &beyond, 1), DAT_INVALID_PARAMETER);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	/* the peer must not reach bytes outside its grant */
	memset(at, 0xaa, SIZE);
	for (i = 0; i < 3; i++) {
		ep = link_in(p, &n, n.pz);
		pair_grant(p, &zero);
		pair_send(p, &at, sizeof(at));
		expect_end(n.conn, ep);
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	for (i = 0; i < SIZE; i++)
		SAME(at[i], 0xaa);
	OK(dat_lmr_free(zero.lmr));
	mem_put(&plain);
	node_close(&n);
}

static void zero_client(struct pair *p)
{
	DAT_EP_HANDLE ep;
	struct node n;
	unsigned i;

	node_open(&n);
	if (!has_zero_based(&n))
		pair_skip("this fabric has no zero-based addresses");
	ep = link_in(p, &n, n.pz);
	for (i = 0; i < 4; i++)
		visit(p, &n, ep, 5);
	pair_unlink(p, &n, ep);
	OK(dat_ep_free(ep));
	mem_get(&n, &n.m, PART);
	for (i = 0; i < 3; i++) {
		unsigned char *at;
		struct grant g;

		ep = link_in(p, &n, n.pz);
		pair_granted(p, &g);
		SAME(g.address, 0);
		pair_recv(p, &at, sizeof(at));
		/* at the virtual address, before the first byte, and past the last */
		g.address = i == 0 ? (uintptr_t)at : i == 1 ? UINT64_MAX - 7 : SIZE - PART + 8;
		post_write(ep, &n.m, 0, PART, 1, &g, 0);
		expect_refused(&n, ep, 1, "written outside the grant");
		pair_sync(p);
		OK(dat_ep_free(ep));
	}
	node_end(&n);
}
#endif

/*
 * Memory that its owner has unmapped, although peers may read it: the read ends when a later write
 * has been answered, or a probe of the provider's
 */

/* tcp sends long answers from the memory itself, by the kernel. Valgrind reports that. */
static void unmapped_begin(void)
{
	const char *runner = getenv("TEST_RUNNER");

	if (!pair_fabric_is("tcp") || (runner && *runner))
		pair_skip("a process of its own reads the memory");
}

static void unmapped_server(struct pair *p)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
	DAT_EP_HANDLE ep;
	struct mem m, good;
	struct node n;

	unmapped_begin();
	CHECK(at != MAP_FAILED, "no memory");
	node_open(&n);
	OK(make(&n, &(struct args){ DAT_MEM_TYPE_VIRTUAL, { .for_va = at }, SIZE, n.pz,
				    DAT_MEM_PRIV_READ_FLAG, false }, &m));
	mem_get(&n, &good, SIZE);
	ep = link_in(p, &n, n.pz);
	CHECK(mmap(at, SIZE, PROT_NONE, flags | MAP_FIXED, -1, 0) == at, "not unmapped");
	pair_grant(p, &m);
	pair_grant(p, &good);
	SAME(expect_end(n.conn, ep), DAT_CONNECTION_EVENT_BROKEN);
	OK(dat_ep_free(ep));
	OK(dat_lmr_free(m.lmr));
	munmap(at, SIZE);
	mem_put(&good);
	node_close(&n);
}

/* Reads the memory, and if @writes, other memory is written after that. */
static void unmapped_read(struct pair *p, bool writes)
{
	struct grant bad, good;
	struct node n;

	unmapped_begin();
	node_open(&n);
	mem_get(&n, &n.m, SIZE);
	memset(n.m.base, 0xaa, SIZE);
	n.ep = link_in(p, &n, n.pz);
	pair_granted(p, &bad);
	pair_granted(p, &good);
	post_read(n.ep, &n.m, 0, SIZE, 1, &bad, 0);
	if (writes)
		post_write(n.ep, &n.m, 0, PART, 2, &good, 0);
	expect_dto(n.req, 1, DAT_DTO_ERR_REMOTE_RESPONDER, 0);
	if (writes)
		expect_dto(n.req, 2, DAT_DTO_ERR_FLUSHED, 0);
	SAME(expect_end(n.conn, n.ep), DAT_CONNECTION_EVENT_BROKEN);
	CHECK(n.m.base[0] == 0xaa && n.m.base[SIZE - 1] == 0xaa, "bytes were read");
	node_end(&n);
}

static void unmapped_client(struct pair *p)
{
	unmapped_read(p, true);
}

static void unmapped_alone_client(struct pair *p)
{
	unmapped_read(p, false);
}

/* The attribute is a limit; a refused call registers nothing. */
static void limits(struct pair *p)
{
	struct node n;
	DAT_VLEN most;
	struct mem m;

	node_open(&n);
	most = n.attr.max_lmr_block_size;
	if (most + 1)	/* in 1.2 the limit is the type's maximum */
		most++;
	FAILS(make(&n, &(struct args){ DAT_MEM_TYPE_VIRTUAL, { .for_va = &n }, most, n.pz,
				       PRIV_LOCAL, false }, &m), DAT_INVALID_PARAMETER);
	FAILS(make(&n, &(struct args){ DAT_MEM_TYPE_LMR, { .for_lmr_handle = n.pz }, 8, n.pz,
				       PRIV_LOCAL, false }, &m), DAT_INVALID_HANDLE);
	FAILS(make(&n, &(struct args){ DAT_MEM_TYPE_LMR, { .for_lmr_handle = NULL }, 8, n.pz,
				       PRIV_LOCAL, false }, &m), DAT_INVALID_HANDLE);
	FAILS(make(&n, &(struct args){ (DAT_MEM_TYPE)3, { .for_va = &n }, 8, n.pz,
				       PRIV_LOCAL, false }, &m), DAT_INVALID_PARAMETER);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("an LMR of another LMR", derived_server, visitor),
	PAIR_CASE("memory shared by two processes", shared_server, shared_client),
#if DAT_VERSION_MAJOR >= 2
	PAIR_CASE("zero-based addresses", zero_server, zero_client),
#endif
	PAIR_CASE("memory that its owner has unmapped", unmapped_server, unmapped_client),
	PAIR_CASE("the same without a write", unmapped_server, unmapped_alone_client),
	PAIR_CASE("limits and other types", NULL, limits),
};

PAIR_MAIN(cases)
