/* Gives a container that runs without files its root. */
int enter_root(int count, char **arguments);
