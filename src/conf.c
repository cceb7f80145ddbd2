/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parser of dat.conf: one entry of eight fields per line. */

#include "conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum field {
	FIELD_NAME,
	FIELD_API,
	FIELD_THREADS,
	FIELD_DEFAULT,
	FIELD_LIBRARY,
	FIELD_VERSION,
	FIELD_IA_PARAMS,
	FIELD_PLATFORM_PARAMS,
	FIELD_COUNT,
};

#define NAME_SIZE 256 /* DAT_NAME_MAX_LENGTH: with the terminating null */

#define BLANK " \t\v\f"

/* Unquotes the field at the quote *@pos, and moves *@pos past it. Null without a closing quote. */
static char *quoted_field(char **pos)
{
	char *in = *pos + 1, *out = in, *text = in;

	for (; *in != '"'; *out++ = *in++) {
		if (*in == '\\')
			in++;
		if (!*in)
			return NULL;
	}
	*pos = in + 1;
	*out = '\0';
	return text;
}

/* Splits @line into @field. Returns the number of fields, or a negative value and a reason. */
static int split(char *line, char *field[FIELD_COUNT], const char **reason)
{
	char *pos = line;
	int n = 0;

	for (;;) {
		pos += strspn(pos, BLANK);
		if (!*pos || *pos == '#')
			return n;
		if (n == FIELD_COUNT) {
			*reason = "more than eight fields";
			return -1;
		}
		if (*pos != '"') {
			field[n++] = pos;
			pos += strcspn(pos, BLANK);
			if (*pos)
				*pos++ = '\0';
			continue;
		}
		field[n] = quoted_field(&pos);
		if (!field[n++]) {
			*reason = "the closing quote is missing";
			return -1;
		}
		if (*pos && !strchr(BLANK "#", *pos)) {
			*reason = "text follows a closing quote";
			return -1;
		}
	}
}

/* Reads decimal digits that fit 32 bits; null if there are none. */
static const char *number(const char *text, uint32_t *value)
{
	uint64_t v = 0;
	const char *p;

	for (p = text; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (*p - '0');
		if (v > UINT32_MAX)
			return NULL;
	}
	*value = v;
	return p == text ? NULL : p;
}

/* "MAJOR.MINOR" and nothing else */
static bool version_pair(const char *text, uint32_t *major, uint32_t *minor)
{
	text = number(text, major);
	if (!text || *text != '.')
		return false;
	text = number(text + 1, minor);
	return text && !*text;
}

/* Whether @text is one of two words; sets *@value if it is the first. */
static bool one_of(const char *text, const char *yes, const char *no, bool *value)
{
	*value = !strcmp(text, yes);
	return *value || !strcmp(text, no);
}

static const char *check(char *const field[FIELD_COUNT], struct dreg_conf_entry *e)
{
	const char *api = field[FIELD_API], *version = field[FIELD_VERSION];
	const char *pair = strrchr(version, '.');
	uint32_t unused;

	if (!*field[FIELD_NAME])
		return "the IA name is empty";
	if (strlen(field[FIELD_NAME]) >= NAME_SIZE)
		return "the IA name has more than 255 bytes";
	if ((*api != 'u' && *api != 'k') || !version_pair(api + 1, &e->major, &e->minor))
		return "the API version is not u or k with MAJOR.MINOR";
	if (!one_of(field[FIELD_THREADS], "threadsafe", "nonthreadsafe", &e->threadsafe))
		return "the third field is not threadsafe or nonthreadsafe";
	if (!one_of(field[FIELD_DEFAULT], "default", "nondefault", &e->usable))
		return "the fourth field is not default or nondefault";
	if (!*field[FIELD_LIBRARY])
		return "the library is empty";
	/* the ID may have dots of its own: the pair begins after the last dot but one */
	while (pair && pair > version && pair[-1] != '.')
		pair--;
	if (!pair || pair <= version + 1 || !version_pair(pair, &unused, &unused))
		return "the provider version is not ID.MAJOR.MINOR";

	e->user = *api == 'u';
	e->name = field[FIELD_NAME];
	e->library = field[FIELD_LIBRARY];
	e->version = version;
	e->ia_params = field[FIELD_IA_PARAMS];
	e->platform_params = field[FIELD_PLATFORM_PARAMS];
	return NULL;
}

enum dreg_conf_kind dreg_conf_parse(char *line, size_t len, struct dreg_conf_entry *entry,
				    const char **reason)
{
	char *field[FIELD_COUNT];
	int n;

	*reason = NULL;
	if (strlen(line) != len) {
		*reason = "the line contains a null byte";
		return DREG_CONF_BAD;
	}
	n = split(line, field, reason);
	if (n == 0)
		return DREG_CONF_BLANK;
	if (n > 0 && n < FIELD_COUNT)
		*reason = "fewer than eight fields";
	else if (n == FIELD_COUNT)
		*reason = check(field, entry);
	return *reason ? DREG_CONF_BAD : DREG_CONF_ENTRY;
}

/*
 * Reads a line, without its terminator, into @line of DREG_CONF_LINE_SIZE bytes. Sets *@size to its
 * length, at least DREG_CONF_LINE_SIZE if it is too long. Returns false at the end of the file.
 */
static bool line_get(FILE *file, char *line, size_t *size)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(file)) != '\n' && c != EOF && n < DREG_CONF_FILE_SIZE)
		if (n++ < DREG_CONF_LINE_SIZE - 1)
			line[n - 1] = (char)c;
	*size = n;
	if (n >= DREG_CONF_LINE_SIZE)
		return true;
	line[n] = '\0';
	return n || c != EOF;
}

int dreg_conf_read(FILE *file, const struct dreg_conf_sink *sink)
{
	char line[DREG_CONF_LINE_SIZE];
	struct dreg_conf_entry entry;
	unsigned int line_no = 1;
	enum dreg_conf_kind kind;
	size_t len, mark, total = 0;
	const char *reason;
	int err;

	for (; line_get(file, line, &len); line_no++) {
		total += len + 1;
		if (total > DREG_CONF_FILE_SIZE) {
			sink->bad(sink->arg, line_no, "the file exceeds 1 MiB here; "
				  "this line and the rest are ignored", true);
			return 0;
		}
		if (len >= sizeof(line)) {
			sink->bad(sink->arg, line_no, "the line has more than 8191 bytes", false);
			continue;
		}
		if (len && line[len - 1] == '\r')
			line[--len] = '\0';
		/* a byte order mark */
		mark = line_no == 1 && !strncmp(line, "\xef\xbb\xbf", 3) ? 3 : 0;
		kind = dreg_conf_parse(line + mark, len - mark, &entry, &reason);
		if (kind == DREG_CONF_ENTRY)
			sink->entry(sink->arg, line_no, &entry);
		else if (kind == DREG_CONF_BAD)
			sink->bad(sink->arg, line_no, reason, false);
	}
	err = ferror(file) ? errno : 0;
	if (err)
		sink->bad(sink->arg, line_no, strerror(err), true);
	return -err;
}

/*
 * Does not block on a FIFO without a writer, and refuses files that have no end. /dev/null counts
 * as an empty file: DAT_OVERRIDE=/dev/null selects an empty registry.
 */
FILE *dreg_conf_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;
	struct stat st;
	FILE *file;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode) &&
	    !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		errno = EINVAL;
	else if ((file = fdopen(fd, "r")))
		return file;
	err = errno;
	close(fd);
	errno = err;
	return NULL;
}

/* True after an error other than absence as well, which opening @path reports. */
static bool exists(const char *path)
{
	struct stat st;

	return !stat(path, &st) || (errno != ENOENT && errno != ENOTDIR);
}

const char *dreg_conf_dir(const char *const *dirs)
{
	char path[DREG_CONF_PATH_SIZE];

	for (; *dirs; dirs++) {
		snprintf(path, sizeof(path), "%s/" DREG_CONF_FILE, *dirs);
		if (exists(path))
			return *dirs;
		snprintf(path, sizeof(path), "%s/" DREG_CONF_INCLUDE, *dirs);
		if (exists(path))
			return *dirs;
	}
	return NULL;
}

/* Backups of editors and package managers end otherwise. */
static int is_included(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 && !strcmp(d->d_name + len - 5, ".conf");
}

/* Not alphasort(): its order depends on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int dreg_conf_included(const char *path, struct dirent ***list)
{
	int n = scandir(path, list, is_included, by_name);

	return n < 0 ? -errno : n;
}
