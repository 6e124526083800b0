//! What a kernel before Linux 5.3 has not.
#![allow(unreachable_pub, reason = "each test binary includes this file")]

/// From here on `pidfd_open` fails with ENOSYS, in this thread and in those that it starts.
pub fn without_pidfds() {
    let number = u32::try_from(libc::SYS_pidfd_open).unwrap();
    let filter = |code: u32, on_true, on_false, k| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: on_true,
        jf: on_false,
        k,
    };
    let mut program = [
        // The number of the call is the first field of what the filter sees.
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        filter(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap(),
        ),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program =
        libc::sock_fprog { len: program.len().try_into().unwrap(), filter: program.as_mut_ptr() };
    // SAFETY: this option takes numbers only. What it forbids are privileges through `exec`.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program is alive during the call, which copies it, and its length is right.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call takes two integers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    assert_eq!(fd, -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
}
