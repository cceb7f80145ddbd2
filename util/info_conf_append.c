/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Appends entries to the dat.conf that the registry reads. */
#include "info_conf_append.h"

#include "conf.h"
#include "conf_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a file has an entry: the callbacks of dreg_conf_read() compare each with @wanted. */
struct lookup {
	const struct dreg_conf_entry *wanted;
	bool found;
};

static void compare(void *arg, unsigned int line, const struct dreg_conf_entry *e)
{
	struct lookup *l = arg;
	const struct dreg_conf_entry *w = l->wanted;

	(void)line;
	l->found |= !strcmp(e->name, w->name) && e->user == w->user && e->major == w->major &&
		    e->minor == w->minor && e->threadsafe == w->threadsafe;
}

static void ignore(void *arg, unsigned int line, const char *reason, bool ends)
{
	(void)arg;
	(void)line;
	(void)reason;
	(void)ends;
}

/* Whether @text has an entry with the name, version and thread safety of @wanted. */
static bool has_entry(char *text, size_t size, const struct dreg_conf_entry *wanted)
{
	struct lookup l = { .wanted = wanted };
	const struct dreg_conf_sink sink = { compare, ignore, &l };
	FILE *f = size ? fmemopen(text, size, "r") : NULL;

	if (!f)
		return false;
	dreg_conf_read(f, &sink);
	fclose(f);
	return l.found;
}

/* Writes the entries among @lines that @old lacks. Returns their number. */
static int write_missing(FILE *out, const char *lines, char *old, size_t size)
{
	int n = 0;

	while (*lines) {
		size_t len = strcspn(lines, "\n");
		struct dreg_conf_entry entry;
		char copy[DREG_CONF_LINE_SIZE];
		const char *reason;

		snprintf(copy, sizeof(copy), "%.*s", (int)len, lines);
		if (dreg_conf_parse(copy, strlen(copy), &entry, &reason) == DREG_CONF_ENTRY &&
		    !has_entry(old, size, &entry)) {
			fprintf(out, "%.*s\n", (int)len, lines);
			n++;
		}
		lines += len + (lines[len] == '\n');
	}
	return n;
}

/* Reads the file; a missing one is empty. The caller frees *@text. Returns 0 or negative errno. */
static int read_whole(const char *path, char **text, size_t *size, struct stat *st)
{
	FILE *out = open_memstream(text, size), *f;
	char block[4096];
	size_t n;
	int err = 0;

	if (!out)
		return -ENOMEM;
	memset(st, 0, sizeof(*st));
	f = dreg_conf_open(path);
	if (f) {
		while ((n = fread(block, 1, sizeof(block), f)) > 0)
			fwrite(block, 1, n, out);
		err = ferror(f) || fstat(fileno(f), st) || !S_ISREG(st->st_mode) ? -EINVAL : 0;
		fclose(f);
	} else if (errno != ENOENT) {
		err = -errno;
	}
	if (fclose(out) && !err)
		err = -ENOMEM;
	return err;
}

/* Gives the new file the owner and mode of the old one, or the mode of a configuration file. */
static int attributes_set(int fd, const struct stat *st)
{
	struct stat now;

	if (!st->st_nlink)
		return fchmod(fd, 0644) ? -errno : 0;
	if (fstat(fd, &now) || ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
				fchown(fd, st->st_uid, st->st_gid)))
		return -errno;
	return fchmod(fd, st->st_mode & 07777) ? -errno : 0;
}

/* Writes @old and the missing lines to the new file. Returns their number or negative errno. */
static int new_write(int fd, const char *lines, char *old, size_t size, const struct stat *st)
{
	FILE *f = fdopen(fd, "w");
	int n, err;

	if (!f) {
		err = -errno;
		close(fd);
		return err;
	}
	fwrite(old, 1, size, f);
	if (size && old[size - 1] != '\n')
		putc('\n', f);
	n = write_missing(f, lines, old, size);
	err = attributes_set(fd, st);
	if (!err && (fflush(f) || fsync(fd)))
		err = -errno;
	/* the registry would ignore the end */
	if (!err && n > 0 && ftell(f) > DREG_CONF_FILE_SIZE)
		err = -EFBIG;
	if (fclose(f) && !err)
		err = -errno;
	return err ? err : n;
}

/*
 * Replaces @path by a new file with the lines appended. Readers see the old file or the new one.
 * The caller has locked the directory, so the new file's name is its own: a process that was
 * killed here leaves one file, which the next call removes.
 */
static int replace(const char *path, const char *lines)
{
	char temporary[PATH_MAX + 16], *old = NULL;
	struct stat st;
	size_t size;
	int fd, n = read_whole(path, &old, &size, &st);

	if (n)
		goto free_old;
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	n = fd < 0 ? -errno : new_write(fd, lines, old, size, &st);
	if (n > 0 && rename(temporary, path))
		n = -errno;
	if (fd >= 0 && n <= 0)
		unlink(temporary);
free_old:
	free(old);
	return n;
}

int conf_append(const char *path, const char *lines)
{
	char real[PATH_MAX], dir[PATH_MAX];
	int lock, n;

	/* a symbolic link stays */
	if (!realpath(path, real))
		snprintf(real, sizeof(real), "%s", path);
	snprintf(dir, sizeof(dir), "%s", real);
	lock = open(dirname(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0)
		return -errno;
	/* two calls at once would lose the lines of one */
	n = flock(lock, LOCK_EX) ? -errno : replace(real, lines);
	close(lock);
	return n;
}

void conf_path(char *path, size_t size)
{
	const char *override = secure_getenv("DAT_OVERRIDE");
	const char *dir = dreg_conf_dir(conf_dirs);

	if (override)
		snprintf(path, size, "%s", override);
	else
		snprintf(path, size, "%s/" DREG_CONF_FILE, dir ? dir : conf_dirs[0]);
}

#define OWN_LIBRARY "libdaplofi.so."

/* Takes the first library of this provider and of the API version of this program. */
static void take_own(void *arg, unsigned int line, const struct dreg_conf_entry *e)
{
	const char *slash = strrchr(e->library, '/'), *base = slash ? slash + 1 : e->library;
	char *library = arg;

	(void)line;
	if (!*library && e->user && e->major == DAT_VERSION_MAJOR &&
	    !strncmp(base, OWN_LIBRARY, strlen(OWN_LIBRARY)))
		snprintf(library, PATH_MAX, "%s", e->library);
}

static void own_library(const char *libdir, char library[PATH_MAX])
{
	const struct dreg_conf_sink sink = { take_own, ignore, library };
	char path[DREG_CONF_PATH_SIZE];
	FILE *f;

	library[0] = '\0';
	conf_path(path, sizeof(path));
	f = dreg_conf_open(path);
	if (f) {
		dreg_conf_read(f, &sink);
		fclose(f);
	}
	if (!*library)
		snprintf(library, PATH_MAX, "%s/" OWN_LIBRARY "%d", libdir, DAT_VERSION_MAJOR);
}

bool conf_own_only(const char *libdir)
{
	char library[PATH_MAX], path[64];
	int fd;

	own_library(libdir, library);
	fd = memfd_create("dat.conf", 0);
	if (fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return dprintf(fd, "ofi u%d.%d nonthreadsafe default \"%s\" dapl.%d.%d \"\" \"\"\n",
		       DAT_VERSION_MAJOR, DAT_VERSION_MINOR, library, DAT_VERSION_MAJOR,
		       DAT_VERSION_MINOR) > 0 &&
	       !setenv("DAT_OVERRIDE", path, 1);
}
