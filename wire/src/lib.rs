//! Messages between rooms, errors as HTTP, names of objects.
