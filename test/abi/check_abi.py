#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks a DAT header set, and optionally a shared library, against recorded ABI facts.

  check_abi.py FACTS.json INCDIR [HEADER ...] [--cc CC] [--std STD] [--lib LIB.so]
               [--soname NAME] [--keep FILE.c] [--only-headers] [--mutate]

HEADER defaults to the list in the facts. A C file made only of compile-time assertions is
generated and compiled with -fsyntax-only. --mutate falsifies one fact of every kind in
turn and requires each to be caught: it tests this checker. Exit status 0: all facts hold."""
import argparse, copy, json, re, subprocess, sys

PRE = ['sys/types.h', 'stdint.h', 'stddef.h', 'stdarg.h', 'sys/socket.h', 'netinet/in.h']

def proto(ret, params, variadic=False):
    p = ', '.join(x['type'] for x in params) or 'void'
    if variadic: p += ', ...'
    return f'{ret} (*)({p})'

def cstr(s): return '"' + s.replace('\\', '\\\\').replace('"', '\\"') + '"'

def generate(J, headers, skip):
    o = [f'#include <{h}>' for h in PRE + headers]
    a = o.append
    a('#define STR1_(x) #x')
    a('#define STR_(x) STR1_(x)')
    a('#define SAME_(a, b) __builtin_types_compatible_p(a, b)')
    a('#define KIND_(x) _Generic((x), int: 1, unsigned int: 2, long: 3, unsigned long: 4, long long: 5,'
      ' unsigned long long: 6, void *: 7, default: 0)')
    a('struct flag_probe_;')
    n = [0]
    def sa(cond, msg):
        n[0] += 1
        a(f'_Static_assert({cond}, {cstr(msg)});')
    on = lambda e: e.get('header') not in skip
    for t, e in J['typedefs'].items():
        if not on(e): continue
        sa(f'sizeof({t}) == {e["size"]}', f'sizeof {t}')
        sa(f'_Alignof({t}) == {e["align"]}', f'alignof {t}')
        if 'signed' in e: sa(f'((({t})-1) < ({t})0) == {int(e["signed"])}', f'signedness of {t}')
        if 'function_pointer' in e:
            f = e['function_pointer']
            sa(f'SAME_({t}, {proto(f["return"], f["params"])})', f'type of {t}')
        else:
            sa(f'SAME_({t}, {e.get("canonical", e["type"])})', f'type of {t}')
            if 'canonical' in e and '<' not in e['type'] and '(' not in e['type']: sa(f'SAME_({t}, {e["type"]})', f'spelled type of {t}')
    for e in J['enums']:
        if not on(e): continue
        if e['tag']:
            sa(f'sizeof(enum {e["tag"]}) == {e["size"]}', f'sizeof enum {e["tag"]}')
            sa(f'(((enum {e["tag"]})-1) < 0) == {int(e["signed"])}', f'signedness enum {e["tag"]}')
            for t in e['typedefs']: sa(f'SAME_({t}, enum {e["tag"]})', f'{t} is enum {e["tag"]}')
        for c, v in e['enumerators']: sa(f'(long long)({c}) == {v}LL', f'enumerator {c} == {v}')
    for r in J['records']:
        if not on(r): continue
        ty = f'{r["kind"]} {r["tag"]}'
        sa(f'sizeof({ty}) == {r["size"]}', f'sizeof {ty}')
        sa(f'_Alignof({ty}) == {r["align"]}', f'alignof {ty}')
        for t in r['typedefs']: sa(f'SAME_({t}, {ty})', f'{t} is {ty}')
        for f in r['fields']:
            m = f'{ty}.{f["name"]}'
            sa(f'__builtin_offsetof({ty}, {f["name"]}) == {f["offset"]}', f'offsetof {m}')
            sa(f'sizeof((({ty} *)0)->{f["name"]}) == {f["size"]}', f'sizeof {m}')
            if '<' not in f['type']:
                sa(f'SAME_(__typeof__((({ty} *)0)->{f["name"]}), {f["type"]})', f'type of {m}')
    kinds = {'int': 1, 'unsigned int': 2, 'long': 3, 'unsigned long': 4, 'long long': 5, 'unsigned long long': 6, 'void *': 7}
    for c, e in J['constants'].items():
        if not on(e): continue
        a(f'#ifndef {c}'); a(f'#error macro {c} is not defined'); a('#endif')
        if 'value' in e:
            k = kinds.get(e['type'])
            if k: sa(f'KIND_({c}) == {k}', f'type of macro {c} is {e["type"]}')
            sa(f'sizeof({c}) == {e["size"]}', f'size of macro {c}')
            if '*' in e['type']:
                sa(f'__builtin_choose_expr(__builtin_constant_p((unsigned long long)({c})), 1, 0)', f'macro {c} constant')
                n[0] += 1
                # not an integer constant expression: compare by array bound of a compound that must fold
                a(f'static const unsigned long long val_{c}_[((unsigned long long)({c}) == {int(e["hex"], 16)}ULL) ? 1 : -1] __attribute__((unused));')
            else:
                bits = '' if e['size'] == 8 else ' & 0xffffffffULL'
                sa(f'((unsigned long long)({c}){bits}) == {int(e["hex"], 16)}ULL', f'value of macro {c} == {e["hex"]}')
        elif 'string' in e:
            s = e['string']
            sa(f'sizeof({c}) == {len(s) + 1}', f'length of macro {c}')
            for i, ch in enumerate(s):
                n[0] += 1
            sa(f'__builtin_strcmp({c}, {cstr(s)}) == 0', f'text of macro {c}')
        elif 'alias_text' in e and ' ' not in e['alias_text']:
            sa(f'__builtin_strcmp(STR_({c}), STR_({e["alias_text"]})) == 0', f'macro {c} expands to {e["alias_text"]}')
    for f, e in J['functions'].items():
        if not on(e): continue
        sa(f'SAME_(__typeof__(&{f}), {proto(e["return"], e["params"], e.get("variadic"))})', f'prototype of {f}')
    slots = {}
    for s in J.get('provider_table', []):
        slots[s['slot']] = s
        sa(f'__builtin_offsetof(struct dat_provider, {s["slot"]}) == {s["offset"]}', f'offset of slot {s["slot"]}')
        sa(f'SAME_(__typeof__(((struct dat_provider *)0)->{s["slot"]}), {s["type"]})', f'type of slot {s["slot"]}')
        g = s.get('signature')
        if g: sa(f'SAME_(__typeof__(((struct dat_provider *)0)->{s["slot"]}), {proto(g["return"], g["params"])})', f'slot {s["slot"]} signature')
    byslot = {}
    for f, e in J['functions'].items():
        if 'provider_slot' in e: byslot.setdefault(e['provider_slot'], f)
    for m, e in J['redirect_macros'].items():
        if not on(e): continue
        a(f'#ifndef {m}'); a(f'#error macro {m} is not defined'); a('#endif')
        s = slots.get(e['slot'])
        if not s or 'signature' not in s: continue      # reference macro names a slot that does not exist
        ps = s['signature']['params']
        dcl = ', '.join(f'{p["type"]} a{i}' for i, p in enumerate(ps))
        order = e['args']
        call = ', '.join(f'a{order.index(x)}' for x in e['params'])
        n[0] += 1
        a(f'static __attribute__((unused)) {s["signature"]["return"]} rm_{m}_({dcl}) {{ return {m}({call}); }}')
    for m, e in J['extension_macros'].items():
        if not on(e): continue
        a(f'#ifndef {m}'); a(f'#error macro {m} is not defined'); a('#endif')
        if e.get('broken_in_reference'): continue
        by = {v['arg']: (v['type'] or 'DAT_CONTEXT') for v in e['va'] if v.get('arg')}
        n[0] += 1
        dcl = ', '.join(f'{by.get(p, "DAT_CONTEXT")} {p}_v' for p in e['params'])
        call = ', '.join(f'{p}_v' for p in e['params'])
        a(f'static __attribute__((unused)) DAT_RETURN xm_{m}_({dcl}) {{ return {m}({call}); }}')
    for m, e in J['other_macros'].items():
        if on(e) and 'params' in e:
            a(f'#ifndef {m}'); a(f'#error macro {m} is not defined'); a('#endif'); n[0] += 1
    return '\n'.join(o) + '\n', n[0]

def consistent(J):
    """facts that are stored twice must agree with each other"""
    bad = []
    def no(t): bad.append('error: JSON inconsistent: ' + t)
    for c, e in J['constants'].items():
        if 'value' not in e: continue
        if e['type'] not in ('int', 'unsigned int', 'long', 'unsigned long', 'long long', 'unsigned long long', 'void *'): no(f'{c} has unknown type {e["type"]}')
        if e['value'] & ((1 << 8 * e['size']) - 1) != int(e['hex'], 16): no(f'{c} value {e["value"]} is not {e["hex"]}')
    slots = {}
    for i, s in enumerate(J.get('provider_table', [])):
        slots[s['slot']] = s
        if s['index'] != i: no(f'slot {s["slot"]} has index {s["index"]}, is number {i}')
    types = lambda x: [p['type'] for p in x]
    for f, e in J['functions'].items():
        k = e.get('provider_slot')
        if k and slots:
            if k not in slots: no(f'{f} names slot {k} which is not in the table')
            elif types(slots[k]['signature']['params']) != types(e['params']) and not e.get('variadic') and f not in ('dat_ia_openv', 'dat_ia_open'):
                no(f'{f} and slot {k} have different parameter types')
        m = e.get('redirect_macro')
        if m:
            if m not in J['redirect_macros']: no(f'{f} names macro {m} which is not listed')
            elif k and J['redirect_macros'][m]['slot'] != k: no(f'{f}: macro {m} uses another slot')
    for m, e in J['redirect_macros'].items():
        if e.get('provider_from') and e['provider_from'] not in e['params']: no(f'{m}: provider_from is no parameter')
    for g in J.get('mapfile', {}).get('global', []):
        if g not in J['functions']: no(f'exported {g} has no prototype')
    return bad

def expansions(J, A, headers, skip):
    """every redirecting macro must reach its slot (or its public function)"""
    todo = [(m, e) for m, e in J['redirect_macros'].items() if e.get('header') not in skip and 'broken_in_reference' not in e]
    src = ''.join(f'#include <{h}>\n' for h in PRE + headers)
    src += ''.join(f'EXPAND {m} : {m}({", ".join(e["params"])})\n' for m, e in todo)
    r = subprocess.run(A.cc.split() + ['-E', '-P', '-w', '-I', A.incdir, '-x', 'c', '-'], input=src, capture_output=True, text=True)
    flat = re.sub(r'\s+', ' ', r.stdout[r.stdout.find('EXPAND '):])
    got = {}
    for part in flat.split('EXPAND ')[1:]:
        k = part.split(' ', 1)[0]
        got[k] = part
    bad = []
    ext = [(m, e) for m, e in J['extension_macros'].items() if e.get('header') not in skip and e.get('op') and not e.get('broken_in_reference')]
    r = subprocess.run(A.cc.split() + ['-E', '-P', '-w', '-I', A.incdir, '-x', 'c', '-'], capture_output=True, text=True,
        input=''.join(f'#include <{h}>\n' for h in PRE + headers) + ''.join(f'EXPAND {m} : OPIS {e["op"]} SIPO {m}({", ".join("arg_%s_" % p for p in e["params"])})\n' for m, e in ext))
    flat = re.sub(r'\s+', ' ', r.stdout[r.stdout.find('EXPAND '):])
    body = {x.split(' ', 1)[0]: x for x in flat.split('EXPAND ')[1:]}
    for m, e in ext:
        op, _, b = body.get(m, '').partition(' SIPO ')
        op = re.sub(r'\W', '', op.partition(' OPIS ')[2])      # the op may itself be a macro
        if op not in re.findall(r'\w+', b): bad.append(f'error: macro {m} does not pass {e["op"]}')
        want = [v['arg'] for v in e['va'] if v.get('arg') in e['params']]
        if re.findall(r'arg_(\w+?)_(?!\w)', b) != want: bad.append(f'error: macro {m} argument order differs from {want}')
    for m, e in todo:
        w = set(re.findall(r'\w+', got.get(m, '')))
        if not ({e['slot'], m.lower()} & w): bad.append(f'error: macro {m} does not reach slot {e["slot"]}')
    return bad

def check(J, A, headers, quiet=False):
    skip = set(J.get('_skip', []))
    if A.only_headers:
        skip |= {e['header'] for e in J['functions'].values()} - {h.split('/')[-1] for h in headers}
    src, n = generate(J, headers, skip)
    if A.keep and not quiet: open(A.keep, 'w').write(src)
    r = subprocess.run(A.cc.split() + [f'-std={A.std}', '-fsyntax-only', '-w', '-I', A.incdir, '-x', 'c', '-'],
                       input=src, capture_output=True, text=True)
    errs = [l for l in r.stderr.splitlines() if 'error' in l]
    bad = consistent(J) + expansions(J, A, headers, skip)
    if A.lib and not quiet:
        want = J.get('library', {}).get('exports') or {s: {'version': None} for s in J.get('mapfile', {}).get('global', [])}
        ver = {k: v.get('version') for k, v in want.items() if v.get('kind', 'T') == 'T'}
        nm = subprocess.run(['nm', '-D', '--defined-only', '--with-symbol-versions', A.lib], capture_output=True, text=True).stdout
        so = A.soname or J.get('library', {}).get('soname')
        dyn = subprocess.run(['readelf', '-d', A.lib], capture_output=True, text=True).stdout
        if so and f'[{so}]' not in ''.join(l for l in dyn.splitlines() if 'SONAME' in l): bad.append(f'{A.lib}: soname is not {so}')
        have = {}
        for l in nm.splitlines():
            p = l.split()
            if len(p) >= 3: s = re.split('@+', p[2]); have[s[0]] = s[1] if len(s) > 1 else None
        if not ver: bad.append(f'{A.lib}: the facts list no symbol to check')
        for s, v in ver.items():
            if s not in have: bad.append(f'{A.lib}: symbol {s} missing')
            elif v and have[s] != v: bad.append(f'{A.lib}: symbol {s} has version {have[s]}, want {v}')
    return r.returncode == 0 and not bad, n, errs + bad

def mutations(J):
    def m(name, fn):
        K = copy.deepcopy(J); fn(K); return name, K
    yield m('typedef size', lambda K: K['typedefs']['DAT_COUNT'].__setitem__('size', 8))
    yield m('typedef signedness', lambda K: K['typedefs']['DAT_COUNT'].__setitem__('signed', False))
    yield m('typedef type', lambda K: K['typedefs']['DAT_TIMEOUT'].update({'type': 'unsigned long', 'canonical': 'unsigned long'}))
    def en(K): K['enums'][0]['enumerators'][1][1] += 1
    yield m('enumerator value', en)
    def el(K):
        e = next(e for e in K['enums'] if e['tag'] == 'dat_return_subtype'); e['enumerators'][-1][1] += 1
    yield m('last subtype value', el)
    rec = lambda K, t: next(r for r in K['records'] if r['tag'] == t)
    yield m('struct size', lambda K: rec(K, 'dat_event').__setitem__('size', 49))
    yield m('field offset', lambda K: rec(K, 'dat_event')['fields'][1].__setitem__('offset', 4))
    yield m('field type', lambda K: rec(K, 'dat_dto_completion_event_data')['fields'][2].__setitem__('type', 'DAT_COUNT'))
    yield m('field missing in header', lambda K: rec(K, 'dat_event')['fields'].append({'name': 'nope', 'type': 'int', 'offset': 0, 'size': 4}))
    yield m('constant value', lambda K: K['constants']['DAT_NAME_MAX_LENGTH'].__setitem__('hex', '0x101'))
    yield m('constant decimal', lambda K: K['constants']['DAT_EP_FIELD_PZ_HANDLE'].__setitem__('value', 77))
    yield m('slot offset', lambda K: K['provider_table'][9].__setitem__('offset', 0))
    yield m('slot index', lambda K: K['provider_table'][9].__setitem__('index', 10))
    yield m('function slot', lambda K: K['functions']['dat_cr_accept'].__setitem__('provider_slot', 'cr_query_func'))
    yield m('constant type', lambda K: K['constants']['DAT_NAME_MAX_LENGTH'].__setitem__('type', 'unsigned long'))
    yield m('pointer constant', lambda K: K['constants']['DAT_EVD_OUT_OF_SCOPE'].__setitem__('hex', '0x3'))
    yield m('string constant', lambda K: K['constants']['DAT_PROVIDER_INIT_FUNC_STR'].__setitem__('string', 'dat_provider_inix'))
    yield m('alias macro', lambda K: K['constants']['max_mtu_size'].__setitem__('alias_text', 'max_rdma_size'))
    yield m('missing macro', lambda K: K['constants'].__setitem__('DAT_NO_SUCH_MACRO', {'header': 'dat.h', 'text': ''}))
    yield m('function parameter', lambda K: K['functions']['dat_evd_wait']['params'][2].__setitem__('type', 'DAT_UINT64'))
    yield m('function return', lambda K: K['functions']['dat_evd_wait'].__setitem__('return', 'void'))
    def sw(K):
        f = rec(K, 'dat_provider')['fields']; f[3]['offset'], f[4]['offset'] = f[4]['offset'], f[3]['offset']
    yield m('provider slot order', sw)
    def sl(K):
        s = next(s for s in K['provider_table'] if s['slot'] == 'ep_connect_func'); s['signature']['params'].pop()
    yield m('provider slot signature', sl)
    if 'dat_ib_post_fetch_and_add' in J['extension_macros']:
        yield m('extension op', lambda K: K['extension_macros']['dat_ib_post_fetch_and_add'].__setitem__('op', 'DAT_IB_CMP_AND_SWAP_OP'))
        yield m('extension argument order', lambda K: K['extension_macros']['dat_ib_post_cmp_and_swap']['va'].reverse())
    def rd(K): K['redirect_macros']['DAT_EVD_RESIZE']['slot'] = 'evd_dequeue_func'
    yield m('redirect macro slot', rd)

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('json'); ap.add_argument('incdir'); ap.add_argument('headers', nargs='*')
    ap.add_argument('--cc', default='cc'); ap.add_argument('--std', default='gnu11'); ap.add_argument('--lib'); ap.add_argument('--soname')
    ap.add_argument('--keep'); ap.add_argument('--only-headers', action='store_true'); ap.add_argument('--mutate', action='store_true')
    A = ap.parse_args()
    J = json.load(open(A.json))
    headers = A.headers or J['headers']
    if not any('dat_ib_extensions' in h for h in headers): J['_skip'] = ['dat_ib_extensions.h']
    if not any('dat_registry' in h for h in headers):
        J['_skip'] = J.get('_skip', []) + ['dat_registry.h', 'dat_redirection.h', 'udat_redirection.h']; J['provider_table'] = []
        J['records'] = [r for r in J['records'] if r['tag'] != 'dat_provider']
    ok, n, errs = check(J, A, headers)
    for e in errs[:40]: print(e)
    print(f'{A.json}: {n} assertions against {A.incdir} {" ".join(headers)}: ' + ('PASS' if ok else f'FAIL ({len(errs)})'))
    if A.mutate:
        miss = 0
        for name, K in mutations(J):
            k, _, er = check(K, A, headers, quiet=True)
            print(f'  mutation [{name}]: ' + ('NOT DETECTED' if k else f'detected ({er[0].split("error: ")[-1][:90]})'))
            miss += k
        ok = ok and not miss
        print('  self test: ' + ('PASS' if not miss else f'{miss} undetected'))
    sys.exit(0 if ok else 1)
main()
