/* Symbolic dims from inside: hash-consed nodes and the polynomials they are brought into. */
#ifndef HN_CORE_DIM_INT_H
#define HN_CORE_DIM_INT_H

#include "core/core.h"

__extension__ typedef __int128 hn_i128;

/* One more operator than the public ones: a negative constant (others are their own handle). */
enum { DIM_CONST = HN_EX_SELECT + 1 };
enum { DIM_MAX_TERMS = 64, DIM_MAX_FACTORS = 32, DIM_MAX_NODES = 1 << 20, DIM_MAX_DEPTH = 4000 };

/*
 * Canonical sums are left-leaning chains ADD(ADD(t1, t2), t3) of terms in falling monomial order, the
 * constant last; a term is a monomial, a constant, or MUL(constant, monomial); a monomial is an atom or a
 * chain MUL(MUL(a1, a2), a3) of atoms in rising order. Every other operator is an atom, and so is an opaque
 * ADD or MUL: one that would not fit int64 coefficients or the limits above. Operands always have smaller
 * indices than the node.
 */
struct dim_node {
    uint8_t op;
    bool opaque;
    int16_t depth; /* 1 for leaves; bounds the stack that walks need */
    hn_dim arg[3]; /* SYM: index of the symbol; CONST: the value */
    /* answers to the last question of each kind */
    uint32_t bounds_epoch, eval_epoch, subst_epoch;
    bool eval_ok;
    int64_t lo, hi;
    hn_i128 value;
    hn_dim subst;
};

struct dim_cache {
    uint32_t bounds_epoch, eval_epoch, subst_epoch; /* bounds_epoch: one more whenever a symbol's bounds change */
};

struct hn_symtab {
    hn_arena *arena;
    HN_VEC(struct dim_node) node;
    HN_VEC(hn_sym *) sym;
    HN_VEC(hn_dim) sym_dim;
    int32_t *bucket; /* node index + 1; open addressing */
    uint32_t n_bucket;
    int32_t *name_bucket; /* symbols by name: index + 1; open addressing */
    uint32_t n_name_bucket;
    struct dim_cache *cache;
};

struct dim_term {
    int64_t coef;
    hn_dim mono; /* 1 for the constant term */
};

struct dim_poly {
    int n;
    bool ok; /* false: did not fit; the contents mean nothing */
    struct dim_term at[DIM_MAX_TERMS];
};

static inline struct dim_node *hn_dim_node_(const hn_symtab *t, hn_dim d)
{
    return &t->node.at[-1 - d];
}

static inline int hn_dim_op_(const hn_symtab *t, hn_dim d)
{
    return d >= 0 ? DIM_CONST : hn_dim_node_(t, d)->op;
}

/** The interned node, made when new. */
hn_dim hn_dim_intern_(hn_symtab *t, int op, bool opaque, hn_dim a, hn_dim b, hn_dim c);
/** The expression `op` of built operands, canonical; op is none of SYM and DIM_CONST. */
hn_dim hn_dim_build_(hn_symtab *t, int op, hn_dim a, hn_dim b, hn_dim c);
/** Structural order of expressions: constants, symbols by name, then by operator and operands. 0 for equal
 * handles only. */
int hn_dim_compare_(const hn_symtab *t, hn_dim x, hn_dim y);

void hn_poly_of_(hn_symtab *t, hn_dim d, struct dim_poly *ret);
void hn_poly_add_(hn_symtab *t, struct dim_poly *p, int64_t coef, hn_dim mono);
/** p += scale * q */
void hn_poly_add_scaled_(hn_symtab *t, struct dim_poly *p, const struct dim_poly *q, int64_t scale);
/** Removes the constant term and returns it. */
int64_t hn_poly_take_const_(struct dim_poly *p);
hn_dim hn_poly_dim_(hn_symtab *t, const struct dim_poly *p);
/** Product of monomials; 0 when it has too many factors. */
hn_dim hn_mono_mul_(hn_symtab *t, hn_dim x, hn_dim y);
/** *ret * y == x with *ret a monomial; false when y does not divide x. */
bool hn_mono_div_(hn_symtab *t, hn_dim x, hn_dim y, hn_dim *ret);

#endif
