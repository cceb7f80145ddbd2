/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connectionless endpoint of a domain: its address, its peers, the buffers for frames. */

#include "fab/endpoint.h"

#include "base/env.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"
#include "fab/quirks.h"

#include <dlfcn.h>
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct dofi_rdm_peer {
	struct dofi_table_link by_address, by_addr;
	unsigned uses;
	fi_addr_t addr;
	size_t len;
	/* libfabric reads the size of its longest address, regardless of len */
	_Alignas(struct sockaddr_storage) unsigned char address[DOFI_RDM_ADDRESS];
};

static size_t buffer_size(const struct dofi_rdm *rdm)
{
	return rdm->prefix + rdm->frame_size;
}

static void buffers_close(struct dofi_rdm *rdm)
{
	dofi_local_mr_close(rdm->mr);
	rdm->mr = NULL;
	free(rdm->memory);
	rdm->memory = NULL;
}

static size_t round_up(size_t size)
{
	return (size + DOFI_CACHE_LINE - 1) / DOFI_CACHE_LINE * DOFI_CACHE_LINE;
}

static int buffers_open(struct dofi_rdm *rdm, const struct dofi_domain *domain)
{
	const size_t stride = round_up(buffer_size(rdm)), size = stride * rdm->n_buffers;
	unsigned i;
	int ret;

	rdm->memory = aligned_alloc(DOFI_CACHE_LINE,
				    size + round_up(rdm->n_buffers * sizeof(*rdm->buffer)));
	if (!rdm->memory)
		return -ENOMEM;
	ret = dofi_local_mr_open(domain, rdm->memory, size, FI_RECV, &rdm->mr);
	if (ret) {
		buffers_close(rdm);
		return ret;
	}
	rdm->buffer = (struct dofi_rdm_buffer *)(rdm->memory + size);
	for (i = 0; i < rdm->n_buffers; i++)
		dofi_rdm_buffer_init(&rdm->buffer[i], rdm, rdm->memory + i * stride);
	return 0;
}

/* Held from save to restore. */
static struct dofi_mutex signals_lock;

static const int taken[DOFI_SIGNALS] = { SIGINT, SIGTERM, SIGBUS, SIGSEGV };

void dofi_signals_save(struct dofi_signals *s) DOFI_TAKES(signals_lock)
{
	int i;

	dofi_mutex_lock(&signals_lock);
	for (i = 0; i < DOFI_SIGNALS; i++)
		sigaction(taken[i], NULL, &s->before[i]);
}

/* Replaces handlers in libfabric, or in a provider with a library of its own. */
void dofi_signals_restore(const struct dofi_signals *s) DOFI_DROPS(signals_lock)
{
	Dl_info handler, libfabric = { .dli_fbase = NULL };
	struct sigaction now;
	int i;

	dladdr((void *)fi_freeinfo, &libfabric);
	for (i = 0; i < DOFI_SIGNALS; i++) {
		/* SIG_DFL and SIG_IGN are in no library */
		if (sigaction(taken[i], NULL, &now) || !dladdr((void *)now.sa_sigaction, &handler))
			continue;
		if (handler.dli_fbase == libfabric.dli_fbase || strstr(handler.dli_fname, "-fi.so"))
			sigaction(taken[i], &s->before[i], NULL);
	}
	dofi_mutex_unlock(&signals_lock);
}

/* Holds the CQ lock: shm crashes if a CQ is read before an endpoint bound to it is enabled. */
static int endpoint_enable(struct dofi_rdm *rdm)
{
	struct fid *cq = &rdm->cq->fid->fid;
	int ret;

	dofi_mutex_lock(&rdm->cq->lock);
	ret = fi_ep_bind(rdm->fid, &rdm->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(rdm->fid, cq, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!ret)
		ret = fi_ep_bind(rdm->fid, cq, FI_RECV);
	if (!ret)
		ret = fi_enable(rdm->fid);
	if (ret) {
		fi_close(&rdm->fid->fid);
		rdm->fid = NULL;
	}
	dofi_mutex_unlock(&rdm->cq->lock);
	return ret;
}

#define NAME_TRIES 16

/*
 * shm names an endpoint after the process number. A file that a killed process with this number has
 * left is EBUSY, and is removed then. The next endpoint has another name.
 */
static int endpoint_open(struct dofi_rdm *rdm, struct fid_domain *domain, struct fi_info *info)
{
	struct dofi_signals signals;
	int i, ret = -FI_EBUSY;
	bool kept;

	for (i = 0; i < NAME_TRIES && ret == -FI_EBUSY; i++) {
		dofi_signals_save(&signals);
		dofi_settings_lend(DOFI_GIVE_AT_ENDPOINT);
		ret = fi_endpoint(domain, info, &rdm->fid, NULL);
		kept = dofi_environ_return();
		if (!ret && !kept) {	/* frames may be longer than rxm keeps in order */
			fi_close(&rdm->fid->fid);
			rdm->fid = NULL;
			ret = -FI_EBUSY;
		}
		if (!ret)
			ret = endpoint_enable(rdm);
		dofi_signals_restore(&signals);
	}
	if (!ret && rdm->cq->fd >= 0)
		dofi_epoll_close_on_exec(rdm->cq->fd);
	return ret;
}

static ssize_t post(const struct dofi_rdm *rdm, struct dofi_rdm_buffer *buffer)
{
	return fi_recv(rdm->fid, buffer->data, buffer_size(rdm), dofi_local_mr_desc(rdm->mr),
		       FI_ADDR_UNSPEC, buffer);
}

/*
 * Cancels the buffers, so that each has completed when the endpoint is closed. Holds the CQ lock:
 * shm frees memory that a thread that reads the CQ may still access.
 */
void dofi_rdm_shut(struct dofi_rdm *rdm)
{
	struct fid_ep *fid = rdm->fid;
	unsigned i;
	int ret;

	if (!fid)
		return;
	dofi_mutex_lock(&rdm->cq->lock);
	rdm->fid = NULL;
	for (i = 0; i < rdm->n_buffers; i++)
		fi_cancel(&fid->fid, &rdm->buffer[i]);
	ret = fi_close(&fid->fid);
	dofi_mutex_unlock(&rdm->cq->lock);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_FAB, "closing an endpoint: %s", fi_strerror(-ret));
}

/* Each attempt to connect opens the endpoint again, so the advice is logged once. */
static void log_failure(const struct dofi_fabric_choice *choice, int error)
{
	static atomic_flag advised = ATOMIC_FLAG_INIT;

	dofi_log(DOFI_WARN, DOFI_FAB, "opening an endpoint: %s", fi_strerror(error));
	if (error == FI_EINVAL && choice->quirk->cq_for_universe &&
	    !atomic_flag_test_and_set(&advised))
		dofi_log(DOFI_ERR, DOFI_FAB,
			 "fabric %s refuses an endpoint, so nothing can connect. If the device has "
			 "short completion queues, set FI_UNIVERSE_SIZE=256: see dat_ofi(7)",
			 choice->info->fabric_attr->prov_name);
}

int dofi_rdm_open(struct dofi_rdm *rdm, struct dofi_domain *domain,
		  const struct dofi_fabric_choice *choice, const struct dofi_rdm_options *options)
{
	struct fi_info *info = choice->info;
	const bool map = info->domain_attr->av_type == FI_AV_MAP;
	struct fi_av_attr attr = { .type = map ? FI_AV_MAP : FI_AV_TABLE };
	const size_t most = info->rx_attr->size;
	unsigned i;
	int ret;

	*rdm = (struct dofi_rdm){
		.cq = &domain->cq,
		.arrived = options->arrived,
		.frame_size = choice->frame_size,
		.prefix = info->mode & FI_MSG_PREFIX ? info->ep_attr->msg_prefix_size : 0,
		.keeps_peers = choice->quirk->keeps_peers,
		.n_buffers = most && most < options->n_buffers ? most : options->n_buffers,
		.address_len = sizeof(rdm->address),
		.address_format = info->addr_format,
	};
	STAILQ_INIT(&rdm->unposted);
	ret = buffers_open(rdm, domain);
	if (ret)
		goto log;
	ret = fi_av_open(domain->fid, &attr, &rdm->av, NULL);
	if (ret)
		goto close_buffers;
	ret = endpoint_open(rdm, domain->fid, info);
	if (ret)
		goto close_av;
	ret = fi_getname(&rdm->fid->fid, rdm->address, &rdm->address_len);
	for (i = 0; i < rdm->n_buffers && !ret; i++)
		ret = post(rdm, &rdm->buffer[i]);
	if (!ret)
		return 0;

	dofi_rdm_shut(rdm);
	dofi_cq_drain(rdm->cq);
close_av:
	fi_close(&rdm->av->fid);
close_buffers:
	buffers_close(rdm);
log:
	log_failure(choice, -ret);
	return ret;
}

static void peer_free(struct dofi_table_link *by_address, void *arg)
{
	(void)arg;
	free(DOFI_CONTAINER_OF(by_address, struct dofi_rdm_peer, by_address));
}

void dofi_rdm_close(struct dofi_rdm *rdm)
{
	dofi_rdm_shut(rdm);
	dofi_cq_drain(rdm->cq);
	dofi_table_each(&rdm->by_address, peer_free, NULL);
	dofi_table_fini(&rdm->by_address);
	dofi_table_fini(&rdm->by_addr);
	fi_close(&rdm->av->fid);
	buffers_close(rdm);
}

/* The characters of a name; it may name a file. */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._-"

/* A name is a terminated string that has the scheme of our own name, up to "://". */
static bool is_address(const struct dofi_rdm *rdm, const void *address, size_t len)
{
	const char *own = (const char *)rdm->address, *name = address, *scheme_end;
	sa_family_t wanted, family;
	size_t scheme;

	if (!len || len > sizeof(rdm->address))
		return false;
	if (rdm->address_format == FI_ADDR_STR) {
		scheme_end = strstr(own, "://");
		scheme = scheme_end ? scheme_end + 3 - own : 0;
		return len > scheme + 1 && memchr(name, 0, len) == name + len - 1 &&
		       !memcmp(own, name, scheme) &&
		       !name[scheme + strspn(name + scheme, NAME_LETTERS)];
	}
	if (len != rdm->address_len)
		return false;
	if (rdm->address_format != FI_SOCKADDR_IN && rdm->address_format != FI_SOCKADDR_IN6)
		return true;
	memcpy(&wanted, rdm->address, sizeof(wanted));
	memcpy(&family, address, sizeof(family));
	return family == wanted;
}

static int peer_new(struct dofi_rdm *rdm, const void *address, size_t len,
		    struct dofi_rdm_peer **out)
{
	struct dofi_rdm_peer *peer;
	int n, ret;

	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	memcpy(peer->address, address, len);
	peer->len = len;
	n = fi_av_insert(rdm->av, peer->address, 1, &peer->addr, 0, NULL);
	if (n != 1) {
		ret = n < 0 ? n : -EHOSTUNREACH;
		goto free_peer;
	}
	ret = dofi_table_add(&rdm->by_address, &peer->by_address, dofi_hash(address, len));
	if (ret)
		goto remove_av;
	ret = dofi_table_add(&rdm->by_addr, &peer->by_addr,
			     dofi_hash(&peer->addr, sizeof(peer->addr)));
	if (ret)
		goto remove_address;
	*out = peer;
	return 0;

remove_address:
	dofi_table_remove(&rdm->by_address, &peer->by_address);
remove_av:
	fi_av_remove(rdm->av, &peer->addr, 1, 0);
free_peer:
	free(peer);
	return ret;
}

/* Uses are counted here: some fabrics do not count additions, or remove an address at once. */
int dofi_rdm_peer_add(struct dofi_rdm *rdm, const void *address, size_t len, fi_addr_t *addr)
{
	struct dofi_rdm_peer *peer = NULL;
	struct dofi_table_link *link;
	int ret;

	if (!is_address(rdm, address, len))
		return -EINVAL;
	link = dofi_table_find(&rdm->by_address, dofi_hash(address, len));
	for (; link; link = dofi_table_next(link)) {
		peer = DOFI_CONTAINER_OF(link, struct dofi_rdm_peer, by_address);
		if (peer->len == len && !memcmp(peer->address, address, len))
			break;
	}
	ret = link ? 0 : peer_new(rdm, address, len, &peer);
	if (ret)
		return ret;
	peer->uses++;
	*addr = peer->addr;
	return 0;
}

void dofi_rdm_peer_remove(struct dofi_rdm *rdm, fi_addr_t addr)
{
	struct dofi_table_link *link = dofi_table_find(&rdm->by_addr,
						       dofi_hash(&addr, sizeof(addr)));
	struct dofi_rdm_peer *peer = NULL;

	for (; link; link = dofi_table_next(link)) {
		peer = DOFI_CONTAINER_OF(link, struct dofi_rdm_peer, by_addr);
		if (peer->addr == addr && peer->uses)
			break;
	}
	if (!link || --peer->uses || rdm->keeps_peers)
		return;
	dofi_table_remove(&rdm->by_address, &peer->by_address);
	dofi_table_remove(&rdm->by_addr, &peer->by_addr);
	fi_av_remove(rdm->av, &peer->addr, 1, 0);
	free(peer);
}

void dofi_rdm_sweep(struct dofi_rdm *rdm)
{
	const unsigned together = rdm->n_buffers < 2 * DOFI_RDM_TOGETHER ? 1 : DOFI_RDM_TOGETHER;
	struct dofi_rdm_buffer *buffer;
	ssize_t ret = 0;

	if (!rdm->fid || rdm->n_unposted < together)
		return;
	while (!ret && (buffer = STAILQ_FIRST(&rdm->unposted))) {
		ret = post(rdm, buffer);
		if (ret == -FI_EAGAIN) {
			dofi_cq_want_sweep(rdm->cq);
			return;
		}
		STAILQ_REMOVE_HEAD(&rdm->unposted, link);
		rdm->n_unposted--;
	}
	if (ret)
		dofi_progress_fail(rdm->cq->progress, ret);
}

void dofi_rdm_repost(struct dofi_rdm_buffer *buffer)
{
	struct dofi_rdm *rdm = buffer->rdm;

	STAILQ_INSERT_TAIL(&rdm->unposted, buffer, link);
	rdm->n_unposted++;
	dofi_rdm_sweep(rdm);
}
