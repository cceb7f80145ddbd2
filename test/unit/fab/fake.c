/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fabric that behaves as a test sets it. */

#include "fake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fake fake;

static int closed_one(struct fid *fid)
{
	fake.open--;
	return 0;
}

/* The first queue is fake.cq, which tests fill. Every further queue stays empty. */
struct other_cq {
	struct fid_cq cq;
	int fd;
};

static bool first_cq_open;

static int cq_closed(struct fid *fid)
{
	struct other_cq *other = (struct other_cq *)fid;

	fake.open--;
	if (fid == &fake.cq.fid) {
		first_cq_open = false;
	} else {
		close(other->fd);
		free(other);
	}
	return fake.fault.cq_close;
}

static int domain_closed(struct fid *fid)
{
	fake.open--;
	return fake.fault.domain_close;
}

static bool first_eq_open, second_eq_open;

/* The event queues of a further IA, which stay empty. */
static struct fid_eq further_eq;

static int eq_closed(struct fid *fid)
{
	fake.open--;
	if (fid == &fake.eq.fid)
		first_eq_open = false;
	if (fid == &fake.second_eq.fid)
		second_eq_open = false;
	return 0;
}

/* epoll refuses files. */
static int unpollable(void)
{
	return memfd_create("unpollable", 0);
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	if (fake.fault.eq_control || command != FI_GETWAIT)
		return fake.fault.eq_control;
	if (fake.fault.eq_fd_bad)
		*(int *)arg = unpollable();
	else if (fid == &further_eq.fid)
		*(int *)arg = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	else
		*(int *)arg = fid == &fake.eq.fid ? fake.eq_fd : fake.second_eq_fd;
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	if (fake.fault.cq_control || command != FI_GETWAIT)
		return fake.fault.cq_control;
	if (fake.fault.no_cq_fd)
		return -FI_ENOSYS;
	*(int *)arg = fake.fault.cq_fd_bad ? unpollable() :
		      fid == &fake.cq.fid ? fake.cq_fd : ((struct other_cq *)fid)->fd;
	return 0;
}

static void fd_set_ready(int fd, bool ready)
{
	uint64_t n;

	if (fake.fault.fd == FAKE_FD_ALWAYS || fake.fault.fd == FAKE_FD_NEVER)
		return;
	syscall(SYS_read, fd, &n, sizeof(n));
	n = 1;
	if (ready != (fake.fault.fd == FAKE_FD_LIES))
		syscall(SYS_write, fd, &n, sizeof(n));
}

/* A readable descriptor reports an arrival again, like a socket. */
static void fd_arrival(int fd)
{
	const uint64_t one = 1;

	if (fake.fault.fd == FAKE_FD_ALWAYS)
		syscall(SYS_write, fd, &one, sizeof(one));
	else
		fd_set_ready(fd, true);
}

static void eq_signal(void)
{
	fd_set_ready(fake.eq_fd, fake.eq_head != fake.eq_tail);
}

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	const int fault = fake.fault.eq_read;	/* loaded once: a test may end it meanwhile */
	struct fake_event *e;
	ssize_t ret = -FI_EAGAIN;

	if (eq != &fake.eq)
		return -FI_EAGAIN;
	fake.eq_errno |= errno;
	fake.eq_reads++;
	if (fault)
		return fault;
	pthread_mutex_lock(&fake.lock);
	e = &fake.event[fake.eq_head % 16];
	if (fake.eq_head != fake.eq_tail && e->err) {
		ret = -FI_EAVAIL;
	} else if (fake.eq_head != fake.eq_tail) {
		*event = e->event;
		ret = sizeof(e->entry) + e->len;
		if ((size_t)ret > len)
			ret = len;
		memcpy(buf, &e->entry, sizeof(e->entry));
		memcpy((char *)buf + sizeof(e->entry), e->data, ret - sizeof(e->entry));
		fake.eq_head++;
		eq_signal();
	}
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct fake_event *e;

	pthread_mutex_lock(&fake.lock);
	e = &fake.event[fake.eq_head % 16];
	buf->fid = e->entry.fid;
	buf->err = e->err;
	buf->prov_errno = e->prov_errno;
	if (e->len < buf->err_data_size)
		buf->err_data_size = e->len;
	memcpy(buf->err_data, e->data, buf->err_data_size);
	fake.eq_head++;
	eq_signal();
	pthread_mutex_unlock(&fake.lock);
	return sizeof(*buf);
}

static void cq_signal(void)
{
	fd_set_ready(fake.cq_fd, fake.cq_head != fake.cq_tail);
}

void fake_guarded(void)
{
	struct dofi_mutex *guard = fake.guard;

	if (!guard || !dofi_mutex_try(guard))
		return;
	dofi_mutex_unlock(guard);
	fake.unguarded++;
}

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	const int fault = fake.fault.cq_read;	/* as in eq_read() */
	struct fi_cq_data_entry *out = buf;
	ssize_t n = 0;

	if (cq != &fake.cq)
		return -FI_EAGAIN;
	fake_guarded();
	pthread_testcancel();	/* as in a system call */
	fake.cq_reads++;
	if (fault)
		return fault;
	pthread_mutex_lock(&fake.lock);
	while ((size_t)n < count && fake.cq_head != fake.cq_tail) {
		struct fake_completion *c = &fake.completion[fake.cq_head % FAKE_QUEUE];

		if (c->err)
			break;
		out[n++] = c->entry;
		fake.cq_head++;
	}
	if (!n)
		n = fake.cq_head == fake.cq_tail ? -FI_EAGAIN : -FI_EAVAIL;
	cq_signal();
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct fake_completion *c;
	ssize_t ret = -FI_EAGAIN;

	fake_guarded();
	if (fake.fault.cq_readerr)
		return fake.fault.cq_readerr;
	pthread_mutex_lock(&fake.lock);
	c = &fake.completion[fake.cq_head % FAKE_QUEUE];
	if (fake.cq_head != fake.cq_tail && c->err) {
		buf->op_context = c->entry.op_context;
		buf->err = c->err;
		buf->prov_errno = c->prov_errno;
		fake.cq_head++;
		ret = 1;
	}
	cq_signal();
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static int trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int ret = 0;

	fake.trywaits++;
	if (fids[0] == &fake.cq.fid)
		fake_guarded();
	pthread_mutex_lock(&fake.lock);
	fake.trywait_fabric = fabric;
	if (fids[0] == &fake.cq.fid && fake.fault.trywait > 0) {
		fake.fault.trywait--;
		ret = -FI_EAGAIN;
	} else if (fids[0] == &fake.cq.fid && fake.cq_head != fake.cq_tail) {
		ret = -FI_EAGAIN;
	} else if (fids[0] == &fake.eq.fid && fake.eq_head != fake.eq_tail) {
		ret = -FI_EAGAIN;
	}
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		   void *context)
{
	if (fake.fault.eq_open)
		return fake.fault.eq_open;
	if (first_eq_open && fake.fault.second_eq_open)
		return fake.fault.second_eq_open;
	fake.open++;
	if (!first_eq_open)
		*eq = &fake.eq;
	else
		*eq = second_eq_open ? &further_eq : &fake.second_eq;
	first_eq_open = true;
	second_eq_open |= *eq == &fake.second_eq;
	return 0;
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		       void *context)
{
	if (fake.fault.domain)
		return fake.fault.domain;
	fake.open++;
	*domain = &fake.domain;
	return 0;
}

/* An open registration. */
struct fake_mr {
	struct fid_mr mr;
	LIST_ENTRY(fake_mr) link;
};

static LIST_HEAD(, fake_mr) mrs = LIST_HEAD_INITIALIZER(mrs);	/* under fake.lock */

static int mr_closed(struct fid *fid)
{
	struct fake_mr *m = (struct fake_mr *)fid;

	if (fake.fault.mr_close)
		return fake.fault.mr_close;
	pthread_mutex_lock(&fake.lock);
	LIST_REMOVE(m, link);
	fake.open--;
	pthread_mutex_unlock(&fake.lock);
	free(m);
	return 0;
}

static struct fi_ops mr_fid_ops = { .size = sizeof(mr_fid_ops), .close = mr_closed };

static struct fid_mr *mr_new(uint64_t key)
{
	struct fake_mr *m = calloc(1, sizeof(*m));

	m->mr.fid.ops = &mr_fid_ops;
	m->mr.key = key;
	pthread_mutex_lock(&fake.lock);
	LIST_INSERT_HEAD(&mrs, m, link);
	fake.open++;
	pthread_mutex_unlock(&fake.lock);
	return &m->mr;
}

bool fake_mr_live(uint64_t key)
{
	struct fake_mr *m;

	pthread_mutex_lock(&fake.lock);
	LIST_FOREACH(m, &mrs, link)
		if (m->mr.key == key)
			break;
	pthread_mutex_unlock(&fake.lock);
	return m;
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	bool fails;

	pthread_mutex_lock(&fake.lock);
	fake.mr_key[fake.mrs++ % 256] = key;
	fake.mr_access = access;
	fake.mr_addr = buf;
	fake.mr_len = len;
	fake.mr_offset = offset;
	fails = fake.fault.mr_times > 0;
	fake.fault.mr_times -= fails;
	pthread_mutex_unlock(&fake.lock);
	if (fails)
		return fake.fault.mr;
	*mr = mr_new(fake.mr_native ? fake.native_key : key);
	return 0;
}

static int passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		      void *context)
{
	if (fake.fault.passive_ep)
		return fake.fault.passive_ep;
	if (fake.passive_ep)
		return fake.passive_ep(info, pep);
	fake.open++;
	*pep = &fake.pep;
	return 0;
}

static int get_opt(fid_t fid, int level, int name, void *value, size_t *len)
{
	if (fake.fault.getopt || level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return fake.fault.getopt ? fake.fault.getopt : -FI_ENOPROTOOPT;
	memcpy(value, &fake.cm_data_size, *len);
	return 0;
}

static struct fi_ops plain_ops = { .size = sizeof(plain_ops), .close = closed_one };
static struct fi_ops domain_fid_ops = { .size = sizeof(domain_fid_ops), .close = domain_closed };
static struct fi_ops eq_fid_ops = { .size = sizeof(eq_fid_ops),
				    .close = eq_closed,
				    .control = eq_control };
static struct fi_ops cq_fid_ops = { .size = sizeof(cq_fid_ops),
				    .close = cq_closed,
				    .control = cq_control };
static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops), .domain = domain_open, .passive_ep = passive_ep,
	.eq_open = eq_open, .trywait = trywait,
};
static struct fi_ops_ep pep_ops = { .size = sizeof(pep_ops), .getopt = get_opt };
static struct fi_ops_mr mr_ops = { .size = sizeof(mr_ops), .reg = mr_reg };
static struct fi_ops_eq eq_ops = { .size = sizeof(eq_ops), .read = eq_read,
				 .readerr = eq_readerr };
static struct fi_ops_cq cq_ops;

static struct fid_cq *other_cq_new(void)
{
	struct other_cq *other = calloc(1, sizeof(*other));

	other->cq = (struct fid_cq){ .fid.ops = &cq_fid_ops, .ops = &cq_ops };
	other->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return &other->cq;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context)
{
	if (fake.fault.no_cq_fd && attr->wait_obj != FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (fake.fault.cq_open)
		return fake.fault.cq_open;
	if (fake.fault.cq_most && attr->size > fake.fault.cq_most)
		return -FI_EINVAL;
	fake.open++;
	*cq = first_cq_open ? other_cq_new() : &fake.cq;
	first_cq_open = true;
	return 0;
}

static int endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 void *context)
{
	return fake.endpoint ? fake.endpoint(info, ep) : -FI_ENOSYS;
}

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		   void *context)
{
	return fake.av_open ? fake.av_open(attr, av) : -FI_ENOSYS;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops), .cq_open = cq_open, .endpoint = endpoint_open,
	.av_open = av_open,
};
static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops), .read = cq_read, .readerr = cq_readerr
};

void fake_init(void)
{
	pthread_mutex_init(&fake.lock, NULL);
	fake.cq_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake.eq_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake.second_eq_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake.fabric = (struct fid_fabric){ .fid.ops = &plain_ops, .ops = &fabric_ops };
	fake.domain = (struct fid_domain){ .fid.ops = &domain_fid_ops,
					   .ops = &domain_ops,
					   .mr = &mr_ops };
	fake.eq = (struct fid_eq){ .fid.ops = &eq_fid_ops, .ops = &eq_ops };
	fake.second_eq = further_eq = fake.eq;
	fake.cq = (struct fid_cq){ .fid.ops = &cq_fid_ops, .ops = &cq_ops };
	fake.pep = (struct fid_pep){ .fid.ops = &plain_ops, .ops = &pep_ops };
	fake.cm_data_size = 256;
}

void fake_set_fd(enum fake_fd fd)
{
	pthread_mutex_lock(&fake.lock);
	fake.fault.fd = FAKE_FD_TRUE;
	fd_set_ready(fake.cq_fd, fd == FAKE_FD_ALWAYS || fd == FAKE_FD_LIES);
	fd_set_ready(fake.eq_fd, fd == FAKE_FD_ALWAYS || fd == FAKE_FD_LIES);
	fake.fault.fd = fd;
	pthread_mutex_unlock(&fake.lock);
}

static void completion_add(const struct fake_completion *completion)
{
	pthread_mutex_lock(&fake.lock);
	fake.completion[fake.cq_tail++ % FAKE_QUEUE] = *completion;
	fd_arrival(fake.cq_fd);
	pthread_mutex_unlock(&fake.lock);
}

void fake_complete(void *context, int err)
{
	completion_add(&(struct fake_completion){ .entry.op_context = context, .err = err });
}

void fake_receive(void *context, uint64_t flags, size_t len)
{
	completion_add(&(struct fake_completion){
		.entry = { .op_context = context, .flags = FI_RECV | flags, .len = len },
	});
}

void fake_event_add(const struct fake_event *event)
{
	pthread_mutex_lock(&fake.lock);
	fake.event[fake.eq_tail++ % 16] = *event;
	fd_arrival(fake.eq_fd);
	pthread_mutex_unlock(&fake.lock);
}

unsigned fake_unread(void)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = fake.cq_tail - fake.cq_head;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

struct fi_info *fake_info(const char *provider, const char *ip)
{
	struct fi_info *info = fi_allocinfo();
	struct sockaddr_in *in;

	info->fabric_attr->prov_name = strdup(provider);
	info->fabric_attr->name = strdup("fake");
	info->domain_attr->name = strdup("fake0");
	info->domain_attr->mr_key_size = sizeof(uint64_t);
	info->domain_attr->cq_data_size = sizeof(uint64_t);
	info->ep_attr->type = FI_EP_MSG;
	info->tx_attr->msg_order = info->rx_attr->msg_order = FI_ORDER_SAS;
	if (*ip) {
		in = calloc(1, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = htons(4711);
		inet_pton(AF_INET, ip, &in->sin_addr);
		info->src_addr = in;
		info->src_addrlen = sizeof(*in);
		info->addr_format = FI_SOCKADDR_IN;
	}
	return info;
}

struct nic {
	struct fid_nic nic;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
};

static int nic_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg);

static struct fi_ops nic_ops = { .size = sizeof(nic_ops),
				 .close = nic_close,
				 .control = nic_control };

static struct fid_nic *nic_new(uint8_t bus, uint64_t speed)
{
	struct nic *n = calloc(1, sizeof(*n));

	n->nic.fid.fclass = FI_CLASS_NIC;
	n->nic.fid.ops = &nic_ops;
	n->nic.bus_attr = &n->bus;
	n->nic.link_attr = &n->link;
	n->bus.bus_type = FI_BUS_PCI;
	n->bus.attr.pci.bus_id = bus;
	n->link.speed = speed;
	return &n->nic;
}

/* fi_dupinfo() copies the NIC through this call. */
static int nic_control(struct fid *fid, int command, void *arg)
{
	const struct nic *n = (const struct nic *)fid;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	*(struct fid_nic **)arg = nic_new(n->bus.attr.pci.bus_id, n->link.speed);
	return 0;
}

void fake_nic(struct fi_info *info, uint8_t bus, uint64_t speed)
{
	info->nic = nic_new(bus, speed);
}

/* libfabric's entry points, for the linker's --wrap. */

int __real_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);
int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);
int __real_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

uint32_t __real_fi_version(void);
uint32_t __wrap_fi_version(void);

uint32_t __wrap_fi_version(void)
{
	return fake.version ? fake.version : __real_fi_version();
}

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	static bool started;

	/* the first call of the process only makes libfabric read its variables */
	if (fake.getinfo && flags == FI_PROV_ATTR_ONLY && !started) {
		started = true;
		return -FI_ENODATA;
	}
	if (fake.getinfo)
		return fake.getinfo(node, flags, hints, info);
	return __real_fi_getinfo(version, node, service, flags, hints, info);
}

int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	if (!fake.replace_fabric)
		return __real_fi_fabric(attr, fabric, context);
	if (fake.fault.fabric)
		return fake.fault.fabric;
	fake.open++;
	*fabric = &fake.fabric;
	return 0;
}
