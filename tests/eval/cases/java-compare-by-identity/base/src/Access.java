class Access {
    boolean mayRead(String user) {
        return user != null;
    }
}
