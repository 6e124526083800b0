//! Lists of a model's threads in one of its words: two bits for each, the oldest lowest.

/// The oldest, or 0, and the others.
pub(super) const fn pop(list: i32) -> (i32, i32) {
    (list & 3, list >> 2)
}

/// With `waiter` (1 to 3) as the newest.
pub(super) const fn push(list: i32, waiter: i32) -> i32 {
    list | waiter << (2 * len(list))
}

/// Without `waiter`, if it is there.
pub(super) const fn remove(mut list: i32, waiter: i32) -> i32 {
    let mut rest = 0;
    while list != 0 {
        let (first, others) = pop(list);
        if first != waiter {
            rest = push(rest, first);
        }
        list = others;
    }
    rest
}

/// How many there are.
pub(super) const fn len(mut list: i32) -> u32 {
    let mut len = 0;
    while list != 0 {
        (_, list) = pop(list);
        len += 1;
    }
    len
}
