/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The static registry: reads dat.conf once, and matches its lines with requests. */

#include "entry.h"

#include "conf.h"
#include "conf_dirs.h"
#include "log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dreg_lock lock = DREG_LOCK_INIT; /* held while dat.conf is read */
/* entries is complete and no longer changes; stored with release */
static atomic_bool is_read;
static struct dreg_entry *entries DREG_GUARDED_BY(lock); /* until is_read is set */

/* Reading dat.conf */

struct reader {
	const char *path;
	struct dreg_entry **tail;
	unsigned int n_bad; /* lines of the file */
	int err;
};

static void entry_free(struct dreg_entry *e)
{
	free(e->library);
	free(e->ia_params);
	free(e->origin);
	free(e);
}

/* Entries of the other API versions are kept, because they determine why an open fails. */
static void take_entry(void *arg, unsigned int line_no, const struct dreg_conf_entry *line)
{
	struct reader *r = arg;
	struct dreg_entry *e;

	if (!line->user || !line->usable) {
		dreg_log(DREG_LOG_CONF, "%s:%u: %s is %s, ignored", r->path, line_no, line->name,
			 line->user ? "not a default" : "for the kernel");
		return;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		goto no_memory;
	strcpy(e->info.ia_name, line->name); /* the parser has checked the length */
	e->info.dapl_version_major = line->major;
	e->info.dapl_version_minor = line->minor;
	e->info.is_thread_safe = line->threadsafe ? DAT_TRUE : DAT_FALSE;
	pthread_mutex_init(&e->lock.mutex, NULL);
	e->library = strdup(line->library);
	e->ia_params = strdup(line->ia_params);
	if (asprintf(&e->origin, "%s:%u", r->path, line_no) < 0)
		e->origin = NULL;
	if (!e->library || !e->ia_params || !e->origin)
		goto free_entry;
	*r->tail = e;
	r->tail = &e->next;
	dreg_log(DREG_LOG_CONF, "%s:%u: %s u%u.%u %s from %s", r->path, line_no, line->name,
		 line->major, line->minor, line->threadsafe ? "threadsafe" : "nonthreadsafe",
		 line->library);
	return;

free_entry:
	entry_free(e);
no_memory:
	r->err = -ENOMEM;
	dreg_log(DREG_LOG_ERROR, "%s:%u: no memory for %s", r->path, line_no, line->name);
}

/*
 * The log has the first bad line of a file, and a line at which reading ends: a file in another
 * format has hundreds of bad lines.
 */
static void report_bad(void *arg, unsigned int line_no, const char *reason, bool ends)
{
	struct reader *r = arg;

	r->n_bad += !ends;
	dreg_log(ends || r->n_bad == 1 ? DREG_LOG_ERROR : DREG_LOG_LINES, "%s:%u: %s", r->path,
		 line_no, reason);
}

/* Errors that may not recur at the next attempt. */
static bool is_transient(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* Returns negative errno. */
static int report_unread(const char *path)
{
	int err = errno;

	dreg_log(DREG_LOG_ERROR, "cannot read %s: %s", path,
		 err == EINVAL ? "not a regular file" : strerror(err));
	return -err;
}

/* Returns negative errno if the file was not read to its end. */
static int file_read(struct reader *r, const char *path)
{
	const struct dreg_conf_sink sink = { take_entry, report_bad, r };
	FILE *file = dreg_conf_open(path);
	int err;

	if (!file)
		return report_unread(path);
	r->path = path;
	r->n_bad = 0;
	err = dreg_conf_read(file, &sink);
	if (r->n_bad > 1)
		dreg_log(DREG_LOG_ERROR, "%s: %u such lines are ignored; DAT_DBG_TYPE=%d logs each",
			 path, r->n_bad, DREG_LOG_ERROR | DREG_LOG_LINES);
	fclose(file);
	return r->err ? r->err : err;
}

/*
 * Reads dat.conf in the directory @dir, and then the files of dat.conf.d in order; either may be
 * missing. Stops at a transient error.
 */
static int dir_read(struct reader *r, const char *dir)
{
	struct dirent **list;
	char path[DREG_CONF_PATH_SIZE], file[sizeof(path) + sizeof((*list)->d_name)];
	int n, err = 0, i;

	snprintf(path, sizeof(path), "%s/" DREG_CONF_FILE, dir);
	if (!access(path, F_OK) || errno != ENOENT)
		err = file_read(r, path);
	if (is_transient(err))
		return err;
	snprintf(path, sizeof(path), "%s/" DREG_CONF_INCLUDE, dir);
	n = dreg_conf_included(path, &list);
	if (n == -ENOENT)
		return 0;
	if (n < 0) {
		errno = -n;
		return report_unread(path);
	}
	for (i = 0, err = 0; i < n; i++) {
		if (!is_transient(err)) {
			snprintf(file, sizeof(file), "%s/%s", path, list[i]->d_name);
			err = file_read(r, file);
		}
		free(list[i]);
	}
	free(list);
	return err;
}

/*
 * A missing file is an empty registry. DAT_OVERRIDE names code to load, so a privileged program
 * ignores it.
 */
int dreg_entries_read(void)
{
	struct reader reader = { .tail = NULL };
	const char *override, *dir;
	int err = 0;

	if (atomic_load_explicit(&is_read, memory_order_acquire))
		return 0;
	dreg_lock(&lock);
	if (is_read)
		goto unlock;
	reader.tail = &entries;
	override = secure_getenv("DAT_OVERRIDE");
	dir = override ? NULL : dreg_conf_dir(conf_dirs);
	if (override)
		err = file_read(&reader, override);
	else if (dir)
		err = dir_read(&reader, dir);
	else
		dreg_log(DREG_LOG_GENERIC, "no dat.conf found");
	if (is_transient(err)) {
		dreg_entries_free();
	} else {
		err = 0;
		atomic_store_explicit(&is_read, true, memory_order_release);
	}
unlock:
	dreg_unlock(&lock);
	return err;
}

/* DREG_UNCHECKED_LOCKS: the list does not change any more. */
struct dreg_entry *dreg_entries(void) DREG_UNCHECKED_LOCKS
{
	return atomic_load_explicit(&is_read, memory_order_acquire) ? entries : NULL;
}

/* DREG_UNCHECKED_LOCKS: called with the lock held, or by a destructor. */
void dreg_entries_free(void) DREG_UNCHECKED_LOCKS
{
	struct dreg_entry *e;

	while ((e = entries)) {
		entries = e->next;
		entry_free(e);
	}
}

/* Matching */

bool dreg_loadable(const DAT_PROVIDER_INFO *info)
{
	return info->dapl_version_major == DAT_VERSION_MAJOR;
}

/*
 * Ranks an exact match first, then a provider that is thread-safe without need, then the highest
 * minor version. Without a match, raises *@lacking to the first requirement that fails.
 */
uint64_t dreg_match(const DAT_PROVIDER_INFO *info, const struct dreg_request *rq,
		    DAT_RETURN_SUBTYPE *lacking)
{
	DAT_RETURN_SUBTYPE missed = DAT_NO_SUBTYPE;

	if (strcmp(info->ia_name, rq->name))
		missed = DAT_NAME_NOT_REGISTERED;
	else if (info->dapl_version_major != rq->major || !dreg_loadable(info))
		missed = DAT_MAJOR_NOT_FOUND;
	else if (info->dapl_version_minor < rq->minor)
		missed = DAT_MINOR_NOT_FOUND;
	else if (rq->threadsafe && !info->is_thread_safe)
		missed = DAT_THREAD_SAFETY_NOT_FOUND;

	/* The subtypes are numbered in this order. */
	if (missed && missed > *lacking)
		*lacking = missed;
	if (missed)
		return DREG_NO_MATCH;
	return (info->dapl_version_minor == rq->minor ?
			0 : 2 * ((uint64_t)UINT32_MAX - info->dapl_version_minor) + 2) +
	       (!!info->is_thread_safe != rq->threadsafe);
}

struct dreg_entry **dreg_entry_candidates(const struct dreg_request *rq,
					  DAT_RETURN_SUBTYPE *lacking)
{
	struct dreg_entry **list, *e;
	size_t n = 0, i;

	for (e = dreg_entries(); e; e = e->next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (e = dreg_entries(), n = 0; e; e = e->next) {
		uint64_t rank = dreg_match(&e->info, rq, lacking);

		if (rank == DREG_NO_MATCH)
			continue;
		for (i = n++; i && dreg_match(&list[i - 1]->info, rq, lacking) > rank; i--)
			list[i] = list[i - 1];
		list[i] = e;
	}
	return list;
}

bool dreg_info_same(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	return !strncmp(a->ia_name, b->ia_name, sizeof(a->ia_name)) &&
	       a->dapl_version_major == b->dapl_version_major &&
	       a->dapl_version_minor == b->dapl_version_minor &&
	       !a->is_thread_safe == !b->is_thread_safe;
}
