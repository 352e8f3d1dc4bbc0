package queue

func Take(items []string) (string, []string) {
	if len(items) == 0 {
		return "", nil
	}
	return items[0], items[1:]
}
