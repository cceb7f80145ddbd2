/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model of marks (fab/writer.h): all interleavings of a writer that writes twice and an owner
 * that ends the grant, on a processor with store buffers. In the order of fab/writer.h no byte is
 * written after the end. In every other order a byte is: so each part of the order is needed.
 */

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How the order is broken. */
enum {
	CHECKS_FIRST = 1,		/* the writer checks the grant before it sets the mark */
	MARKS_RELAXED = 2,		/* the mark stays in the store buffer for a time */
	CLEARS_EARLY = 4,		/* the writer clears the mark while it writes */
	READS_FIRST = 8,		/* the owner reads the mark before it voids the page */
	VOIDS_RELAXED = 16,		/* the void page stays in the store buffer for a time */
	ENDS_UNSEEN = 32,		/* the owner does not read the mark */
};

/* The writer's and the owner's next step, and their knowledge. */
struct state {
	uint8_t writer, owner;
	bool mark, valid;		/* in memory */
	bool mark_out, mark_pending;	/* in the writer's store buffer */
	bool void_pending;		/* in the owner's */
	bool may_write, seen;		/* loaded values of the page and of the mark */
	bool writing, ended;
	uint8_t writes;
};

enum { SET, CHECK, BEGIN, END, CLEAR, WRITER_DONE };
enum { VOID, LOAD, WAIT, REUSE, OWNER_DONE };

static unsigned broken;
static bool reached[1 << 20];
static bool written_after_end;

/* The steps in their order. */
static uint8_t writer_step(const struct state *s)
{
	static const uint8_t usual[] = { SET, CHECK, BEGIN, END, CLEAR, WRITER_DONE };
	static const uint8_t checks_first[] = { CHECK, SET, BEGIN, END, CLEAR, WRITER_DONE };
	static const uint8_t clears_early[] = { SET, CHECK, BEGIN, CLEAR, END, WRITER_DONE };

	return (broken & CHECKS_FIRST ? checks_first :
		broken & CLEARS_EARLY ? clears_early : usual)[s->writer];
}

static uint8_t owner_step(const struct state *s)
{
	static const uint8_t usual[] = { VOID, LOAD, WAIT, REUSE, OWNER_DONE };
	static const uint8_t reads_first[] = { LOAD, VOID, WAIT, REUSE, OWNER_DONE };
	static const uint8_t unseen[] = { VOID, REUSE, OWNER_DONE };

	return (broken & READS_FIRST ? reads_first :
		broken & ENDS_UNSEEN ? unseen : usual)[s->owner];
}

static void mark_store(struct state *s, bool value, bool relaxed)
{
	s->mark_pending = relaxed;
	s->mark_out = value;
	if (!relaxed)
		s->mark = value;
}

static struct state writer_moves(struct state s)
{
	switch (writer_step(&s)) {
	case SET:
		mark_store(&s, true, broken & MARKS_RELAXED);
		break;
	case CHECK:
		s.may_write = s.valid;
		break;
	case BEGIN:
		s.writing = s.may_write;
		break;
	case END:
		s.writing = false;
		break;
	case CLEAR:
		mark_store(&s, false, false);
		break;
	default:
		s.writes++;
		s.writer = 0;
		return s;
	}
	s.writer++;
	return s;
}

static struct state owner_moves(struct state s)
{
	switch (owner_step(&s)) {
	case VOID:
		s.void_pending = broken & VOIDS_RELAXED;
		s.valid = s.void_pending;
		break;
	case LOAD:
		s.seen = s.mark;
		break;
	case WAIT:
		s.seen = s.seen && s.mark;
		if (s.seen)
			return s;	/* again */
		break;
	case REUSE:
		s.ended = true;
		break;
	default:
		return s;
	}
	s.owner++;
	return s;
}

static unsigned number(const struct state *s)
{
	return s->writer | s->owner << 3 | s->mark << 6 | s->valid << 7 | s->mark_out << 8 |
	       s->mark_pending << 9 | s->void_pending << 10 | s->may_write << 11 | s->seen << 12 |
	       s->writing << 13 | s->ended << 14 | s->writes << 15;
}

/* Follows all ways on from @s. */
static void explore(struct state s)
{
	struct state next;

	if (reached[number(&s)])
		return;
	reached[number(&s)] = true;
	written_after_end |= s.writing && s.ended;
	if (s.writes < 2)
		explore(writer_moves(s));
	explore(owner_moves(s));
	next = s;
	if (s.mark_pending) {
		next.mark = s.mark_out;
		next.mark_pending = false;
		explore(next);
	}
	next = s;
	if (s.void_pending) {
		next.valid = next.void_pending = false;
		explore(next);
	}
}

static bool fails(unsigned how)
{
	broken = how;
	written_after_end = false;
	memset(reached, 0, sizeof(reached));
	explore((struct state){ .valid = true });
	return written_after_end;
}

Test(mark_model, nothing_is_written_after_the_end)
{
	cr_expect(!fails(0));
}

Test(mark_model, each_part_of_the_order_is_needed)
{
	unsigned how;

	for (how = 1; how <= ENDS_UNSEEN; how *= 2)
		cr_expect(fails(how), "%u", how);
}
