class Access {
    boolean mayRead(String user) {
        return user != null;
    }

    boolean mayDelete(String user, String owner) {
        return user == owner;
    }
}
