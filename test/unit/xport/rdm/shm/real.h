/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An endpoint of libfabric's own shm, if this libfabric has it. */
#ifndef UNIT_SHM_REAL_H
#define UNIT_SHM_REAL_H

#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>

struct shm_real {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/* Opens all but the endpoint. Returns false without the fabric. */
static inline bool shm_real_open(struct shm_real *r)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA };
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->fabric_attr->prov_name = strdup("shm");
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &r->info)) {
		fprintf(stderr, "skipped: libfabric has no shm here\n");
		fi_freeinfo(hints);
		return false;
	}
	fi_freeinfo(hints);
	cr_assert_eq(fi_fabric(r->info->fabric_attr, &r->fabric, NULL), 0);
	cr_assert_eq(fi_domain(r->fabric, r->info, &r->domain, NULL), 0);
	cr_assert_eq(fi_av_open(r->domain, &av, &r->av, NULL), 0);
	cr_assert_eq(fi_cq_open(r->domain, &cq, &r->cq, NULL), 0);
	return true;
}

/* Opens the endpoint at this libfabric address. Its file exists on return. */
static inline void shm_real_endpoint(struct shm_real *r, const char *address)
{
	free(r->info->src_addr);
	free(r->info->dest_addr);
	r->info->src_addr = strdup(address);
	r->info->src_addrlen = strlen(address) + 1;
	r->info->dest_addr = NULL;
	r->info->dest_addrlen = 0;
	cr_assert_eq(fi_endpoint(r->domain, r->info, &r->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(r->ep, &r->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(r->ep), 0);
}

static inline void shm_real_close(struct shm_real *r)
{
	fi_close(&r->ep->fid);
	fi_close(&r->cq->fid);
	fi_close(&r->av->fid);
	fi_close(&r->domain->fid);
	fi_close(&r->fabric->fid);
	fi_freeinfo(r->info);
}

#endif
