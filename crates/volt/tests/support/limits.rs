//! What the system lets the process have.
#![allow(unreachable_pub, reason = "each test binary includes this file")]

type Resource = libc::__rlimit_resource_t;

/// Lets the process have `count` of a resource, as far as it may. What it was before.
pub fn limit(resource: Resource, count: libc::rlim_t) -> libc::rlim_t {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the limits to a variable of ours.
    assert_eq!(unsafe { libc::getrlimit(resource, &raw mut old) }, 0);
    let new = libc::rlimit { rlim_cur: count.min(old.rlim_max), rlim_max: old.rlim_max };
    // SAFETY: reads the limits from a variable of ours.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const new) }, 0);
    old.rlim_cur
}
