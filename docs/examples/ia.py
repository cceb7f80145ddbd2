# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ia.py: opens an IA from Python, prints some attributes, registers memory, and passes an event
through an EVD. The types are those of dat2/dat.h and dat2/udat.h on a 64-bit machine.

    python3 ia.py IA                    python3 ia.py ofi

How ctypes declares the types of DAT:

* A handle is an address, c_void_p. Flags and enumerations are c_int, a DAT_RETURN is c_uint32.
* Each function needs argtypes. Without them ctypes passes a handle as an int of 32 bits.
* A parameter that is a union (not a pointer to one) is declared as another type, because ctypes
  cannot pass unions by value on every processor. The type must have the union's size, and members of
  the same class, integer or floating point, so that it is passed in the same registers:
  - DAT_CONTEXT, DAT_DTO_COOKIE and DAT_RMR_COOKIE are c_uint64.
  - DAT_REGION_DESCRIPTION is its longest member as a Structure, RegionDescription below.
* A union in memory, such as that in a DAT_EVENT, is a ctypes.Union. No call returns a union.
"""
import ctypes
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_uint32, c_uint64, c_void_p

DAT_FALSE = 0
DAT_IA_FIELD_ALL = 0x3fffffffff
DAT_MEM_TYPE_VIRTUAL = 0
DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x01
DAT_VA_TYPE_VA = 0
DAT_EVD_SOFTWARE_FLAG = 0x001
DAT_SOFTWARE_EVENT = 0x10001
DAT_TIMEOUT_INFINITE = 0xffffffff
DAT_CLOSE_ABRUPT_FLAG = 0


class IaAttr(ctypes.Structure):
    """DAT_IA_ATTR: its first members, and space for the others, which dat_ia_query() fills too."""
    _fields_ = [("adapter_name", c_char * 256), ("vendor_name", c_char * 256),
                ("hardware_version", c_uint32 * 2), ("firmware_version", c_uint32 * 2),
                ("ia_address_ptr", c_void_p), ("max_eps", c_int), ("max_dto_per_ep", c_int),
                ("others", c_uint64 * 64)]


class RegionDescription(ctypes.Structure):
    """DAT_REGION_DESCRIPTION by value: for_shared_memory, which begins like for_va."""
    _fields_ = [("for_va", c_void_p), ("shared_memory_id", c_void_p)]


class EventData(ctypes.Union):
    """DAT_EVENT_DATA: one of its members, and the size of the longest."""
    _fields_ = [("software_pointer", c_void_p), ("longest", c_uint64 * 5)]


class Event(ctypes.Structure):
    """DAT_EVENT"""
    _fields_ = [("event_number", c_int), ("evd_handle", c_void_p), ("event_data", EventData),
                ("event_extension_data", c_uint64 * 8)]


HANDLE_OUT = POINTER(c_void_p)
PROTOTYPES = {
    "dat_ia_openv": [c_char_p, c_int, HANDLE_OUT, HANDLE_OUT, c_uint32, c_uint32, c_int],
    "dat_ia_query": [c_void_p, HANDLE_OUT, c_uint64, POINTER(IaAttr), c_uint64, c_void_p],
    "dat_ia_close": [c_void_p, c_int],
    "dat_pz_create": [c_void_p, HANDLE_OUT],
    "dat_lmr_create": [c_void_p, c_int, RegionDescription, c_uint64, c_void_p, c_int, c_int,
                       HANDLE_OUT, POINTER(c_uint32), POINTER(c_uint32), POINTER(c_uint64),
                       POINTER(c_uint64)],
    "dat_lmr_free": [c_void_p],
    "dat_set_consumer_context": [c_void_p, c_uint64],
    "dat_get_consumer_context": [c_void_p, POINTER(c_uint64)],
    "dat_evd_create": [c_void_p, c_int, c_void_p, c_int, HANDLE_OUT],
    "dat_evd_post_se": [c_void_p, POINTER(Event)],
    "dat_evd_wait": [c_void_p, c_uint32, c_int, POINTER(Event), POINTER(c_int)],
}


def load():
    """Loads the library. Each of its functions ends the program if it fails."""
    lib = ctypes.CDLL("libdat2.so.2")

    def check(ret, function, _):
        if ret:
            kind, subtype = c_char_p(), c_char_p()
            lib.dat_strerror(c_uint32(ret), byref(kind), byref(subtype))
            sys.exit(f"{function.__name__}: {kind.value.decode()} {subtype.value.decode()}")

    for name, types in PROTOTYPES.items():
        function = getattr(lib, name)
        function.argtypes, function.restype, function.errcheck = types, c_uint32, check
    return lib


def main(name):
    dat = load()
    asynchronous, ia, pz, lmr, evd = (c_void_p() for _ in range(5))
    dat.dat_ia_openv(name.encode(), 8, byref(asynchronous), byref(ia), 2, 0, DAT_FALSE)
    attr = IaAttr()
    dat.dat_ia_query(ia, byref(asynchronous), DAT_IA_FIELD_ALL, byref(attr), 0, None)
    print(f"{attr.adapter_name.decode()}: {attr.vendor_name.decode()}, {attr.max_eps} endpoints")

    memory = ctypes.create_string_buffer(4096)
    context, registered, number = c_uint32(), c_uint64(), c_uint64()
    dat.dat_pz_create(ia, byref(pz))
    dat.dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, RegionDescription(ctypes.addressof(memory)),
                       len(memory), pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, byref(lmr),
                       byref(context), None, byref(registered), None)
    dat.dat_set_consumer_context(lmr, 42)
    dat.dat_get_consumer_context(lmr, byref(number))
    print(f"LMR {number.value}: {registered.value} bytes")
    dat.dat_lmr_free(lmr)   # before Python frees the memory

    sent = Event(event_number=DAT_SOFTWARE_EVENT, event_data=EventData(software_pointer=4711))
    received, more = Event(), c_int()
    dat.dat_evd_create(ia, 8, None, DAT_EVD_SOFTWARE_FLAG, byref(evd))
    dat.dat_evd_post_se(evd, byref(sent))
    dat.dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, byref(received), byref(more))
    print(f"event {received.event_number:#x}: {received.event_data.software_pointer}")
    dat.dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)     # frees all objects


if len(sys.argv) != 2:
    sys.exit("usage: ia.py IA")
main(sys.argv[1])
