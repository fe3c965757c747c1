/* The most groups in which the superuser of a root may be. */
enum { GROUPS_MAX = 64 };

/* Gives a container that runs without files its root. */
int enter_root(int count, char **arguments);
