/* Included by BCC's prelude, which uses nothing of it. */
