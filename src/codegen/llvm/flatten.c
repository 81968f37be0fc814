/* An ELF object, read from memory, becomes one piece of code and constants. Only what points from one
 * included byte range to another may be left to resolve; anything else would need a linker at run time and is
 * refused. */
#include "codegen/llvm/llvm_int.h"

#include <elf.h>
#include <string.h>

enum { BLOB_ALIGN = 64 };

typedef struct object {
    const uint8_t *at;
    size_t n;
    const Elf64_Ehdr *eh;
    const Elf64_Shdr *sh;
    int64_t *place; /* of each section in the blob, -1: left out */
    int64_t total, text_end;
} object;

static bool inside(const object *o, uint64_t off, uint64_t n)
{
    return off <= o->n && n <= o->n - off;
}

static hone_status damaged(hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_FORMAT, "LLVM's object file is damaged");
}

static hone_status open_object(object *o, hn_arena *a, hn_diag *dg)
{
    if (o->n < sizeof(Elf64_Ehdr) || memcmp(o->at, ELFMAG, SELFMAG)) return damaged(dg);
    o->eh = (const Elf64_Ehdr *)(const void *)o->at;
    if (o->eh->e_machine != EM_X86_64 || o->eh->e_type != ET_REL || o->eh->e_shentsize != sizeof(Elf64_Shdr))
        return damaged(dg);
    if (!inside(o, o->eh->e_shoff, (uint64_t)o->eh->e_shnum * sizeof(Elf64_Shdr))) return damaged(dg);
    o->sh = (const Elf64_Shdr *)(const void *)(o->at + o->eh->e_shoff);
    for (int i = 0; i < o->eh->e_shnum; i++)
        if (o->sh[i].sh_type != SHT_NOBITS && !inside(o, o->sh[i].sh_offset, o->sh[i].sh_size))
            return damaged(dg);
    if (o->eh->e_shstrndx >= o->eh->e_shnum) return damaged(dg);
    o->place = HN_NEW_N(a, int64_t, o->eh->e_shnum + 1);
    return o->place ? HONE_OK : HN_NOMEM(dg);
}

static bool is_code(const Elf64_Shdr *s)
{
    return s->sh_flags & SHF_EXECINSTR;
}

static void place_section(object *o, int i)
{
    const int64_t align = HN_MAX((int64_t)o->sh[i].sh_addralign, 1);

    o->total = (o->total + align - 1) / align * align;
    o->place[i] = o->total;
    o->total += (int64_t)o->sh[i].sh_size;
}

/* Code first, then constants. Unwind tables are dropped: kernels neither throw nor are unwound through. */
static hone_status place_sections(object *o, hn_diag *dg)
{
    const char *names = (const char *)o->at + o->sh[o->eh->e_shstrndx].sh_offset;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < o->eh->e_shnum; i++) {
            const Elf64_Shdr *s = &o->sh[i];
            if (pass == 0) o->place[i] = -1;
            if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0 || is_code(s) != (pass == 0)) continue;
            if (s->sh_type == SHT_X86_64_UNWIND || !strcmp(names + s->sh_name, ".eh_frame")) continue;
            if (s->sh_flags & (SHF_WRITE | SHF_TLS) || s->sh_type != SHT_PROGBITS ||
                s->sh_addralign > BLOB_ALIGN)
                return HN_RAISE(dg, HONE_E_INTERNAL,
                                "a kernel needs section \"%s\", which cannot be flattened",
                                names + s->sh_name);
            place_section(o, i);
        }
        if (pass == 0) {
            o->text_end = o->total;
            o->total = (o->total + BLOB_ALIGN - 1) / BLOB_ALIGN *
                       BLOB_ALIGN; /* constants start a cache line of their own */
        }
    }
    return HONE_OK;
}

static hone_status symbol_place(const object *o, const Elf64_Shdr *symtab, uint32_t no, int64_t *ret,
                                hn_diag *dg)
{
    const Elf64_Sym *sym = (const Elf64_Sym *)(const void *)(o->at + symtab->sh_offset);
    const char *names = (const char *)o->at + o->sh[symtab->sh_link].sh_offset;

    if (no >= symtab->sh_size / sizeof(*sym)) return damaged(dg);
    if (sym[no].st_shndx == SHN_UNDEF)
        return HN_RAISE(dg, HONE_E_INTERNAL, "a kernel calls \"%s\", which flat code cannot reach",
                        names + sym[no].st_name);
    if (sym[no].st_shndx >= o->eh->e_shnum || o->place[sym[no].st_shndx] < 0)
        return HN_RAISE(dg, HONE_E_INTERNAL, "a kernel refers to something outside its code and constants");
    *ret = o->place[sym[no].st_shndx] + (int64_t)sym[no].st_value;
    return HONE_OK;
}

static hone_status apply(const object *o, const Elf64_Shdr *symtab, const Elf64_Rela *r, int64_t section,
                         int64_t section_bytes, uint8_t *blob, hn_diag *dg)
{
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    const int64_t at = section + (int64_t)r->r_offset;
    int64_t to;

    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32)
        return HN_RAISE(dg, HONE_E_INTERNAL, "a kernel needs relocation %u, which flat code cannot have",
                        type);
    if ((int64_t)r->r_offset > section_bytes - 4) return damaged(dg);
    HN_TRY(symbol_place(o, symtab, (uint32_t)ELF64_R_SYM(r->r_info), &to, dg));
    const int64_t v = to + r->r_addend - at;
    if (v != (int32_t)v) return HN_RAISE(dg, HONE_E_LIMIT, "a kernel's code exceeds 2 GiB");
    const int32_t v32 = (int32_t)v;
    memcpy(blob + at, &v32, sizeof(v32));
    return HONE_OK;
}

static hone_status resolve(const object *o, uint8_t *blob, hn_diag *dg)
{
    for (int i = 0; i < o->eh->e_shnum; i++) {
        const Elf64_Shdr *s = &o->sh[i];
        if (s->sh_type != SHT_RELA || s->sh_info >= o->eh->e_shnum || o->place[s->sh_info] < 0) continue;
        if (s->sh_link >= o->eh->e_shnum) return damaged(dg);
        const Elf64_Rela *r = (const Elf64_Rela *)(const void *)(o->at + s->sh_offset);
        for (uint64_t k = 0; k < s->sh_size / sizeof(*r); k++)
            HN_TRY(apply(o, &o->sh[s->sh_link], &r[k], o->place[s->sh_info],
                         (int64_t)o->sh[s->sh_info].sh_size, blob, dg));
    }
    return HONE_OK;
}

static hone_status find_entry(const object *o, const char *kernel, hn_code *code, hn_diag *dg)
{
    for (int i = 0; i < o->eh->e_shnum; i++) {
        if (o->sh[i].sh_type != SHT_SYMTAB || o->sh[i].sh_link >= o->eh->e_shnum) continue;
        const Elf64_Sym *sym = (const Elf64_Sym *)(const void *)(o->at + o->sh[i].sh_offset);
        const char *names = (const char *)o->at + o->sh[o->sh[i].sh_link].sh_offset;
        for (uint32_t k = 0; k < o->sh[i].sh_size / sizeof(*sym); k++) {
            int64_t at;
            if (sym[k].st_shndx == SHN_UNDEF || strcmp(names + sym[k].st_name, kernel)) continue;
            HN_TRY(symbol_place(o, &o->sh[i], k, &at, dg));
            code->entry = (uint32_t)at;
            return HONE_OK;
        }
    }
    return HN_RAISE(dg, HONE_E_INTERNAL, "LLVM's object file lacks the kernel");
}

hone_status hn_ll_flatten(const uint8_t *elf, size_t n, const char *kernel, hn_arena *a, hn_code *ret,
                          hn_diag *dg)
{
    object o = { .at = elf, .n = n };
    hn_code code = { .align = BLOB_ALIGN };

    HN_TRY(open_object(&o, a, dg));
    HN_TRY(place_sections(&o, dg));
    uint8_t *blob = hn_arena_alloc_aligned(a, (size_t)o.total + 1, BLOB_ALIGN);
    if (!blob) return HN_NOMEM(dg);
    for (int i = 0; i < o.eh->e_shnum; i++)
        if (o.place[i] >= 0) memcpy(blob + o.place[i], o.at + o.sh[i].sh_offset, o.sh[i].sh_size);
    HN_TRY(resolve(&o, blob, dg));
    HN_TRY(find_entry(&o, kernel, &code, dg));
    code.at = blob;
    code.n = (size_t)o.total;
    hn_ll_inspect(&code, (size_t)o.text_end, NULL);
    *ret = code;
    return HONE_OK;
}
